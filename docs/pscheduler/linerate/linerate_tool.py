"""A tool of pScheduler for the tests throughput, rtt and latency, by linerate.

Each program reads one JSON document on standard input and writes one on standard output. A
throughput test goes to a `linerate serve` that runs at the destination as a service, so its second
participant has nothing to do. A latency test goes to what reflects STAMP there, the same service or
a router. Source: pScheduler 5.2, its schemas of these tests (pscheduler-test-*/validate.py) and the
programs of its tools iperf3, ping, owping and twping.

Left out: options of a spec that can-run names.
"""

import datetime
import ipaddress
import json
import os
import re
import socket
import subprocess
import sys
import time

CONFIGURATION = "/etc/pscheduler/tool/linerate.json"

# Options of a spec that become flags of linerate; None is taken note of and needs no flag.
FLAGS = {
    "throughput": {
        "schema": None, "source": None, "source-node": None, "dest": None, "dest-node": None,
        "duration": "-t", "omit": "-O", "interval": "-i", "link-rtt": None, "parallel": "-P",
        "udp": None, "bandwidth": "-b", "window-size": "-w", "mss": "-M", "buffer-length": "-l",
        "ip-tos": "--dscp", "ip-version": None, "local-address": "-B", "congestion": "-C",
        "no-delay": "-N", "zero-copy": "-Z", "reverse": "-R", "single-ended": None,
    },
    "rtt": {
        "schema": None, "source": "-I", "source-node": None, "dest": None, "count": "-c",
        "interval": "-i", "ip-version": None, "ip-tos": "--dscp", "length": "-s", "ttl": "-t",
        "deadline": "-w", "timeout": "-W", "protocol": None, "hostnames": None,
        "flow-label": "--flow-label", "suppress-loopback": None,
    },
    "latency": {
        "schema": None, "source": None, "source-node": None, "dest": None, "dest-node": None,
        "protocol": None, "packet-count": "-c", "packet-interval": "-i", "packet-timeout": "-W",
        "packet-padding": "-s", "ctrl-port": "-p", "ip-tos": "--dscp", "ip-version": None,
        "bucket-width": None, "flip": None, "reverse": None, "traverse-nat": None,
    },
}
PROTOCOLS = {"rtt": "icmp", "latency": "stamp"}
# Of these UDP has none.
TCP_ONLY = ("mss", "congestion", "no-delay", "zero-copy")
TIMES = ("duration", "omit", "interval", "deadline", "timeout")
# Numbers of seconds; those of pScheduler's other tests are durations of ISO 8601.
SECONDS = ("packet-interval", "packet-timeout")
# A time-out of 0 is what owping takes for none: the program's own, as without one.
LATENCY = {"packet-count": 100, "packet-interval": 0.1}
TIMEOUT_S = 1
# Bytes of a packet of STAMP without padding, and those that its extensions need.
STAMP_BYTES = 44
STAMP_EXTENDED_BYTES = 72
DURATION = re.compile(
    r"P(?:([\d.]+)W)?(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?"
)
# Seconds beside a run: the server's answer, and the records.
BESIDE_S = 8
# The destination's participant has to be ready first.
AFTER_BEGIN_S = 1


class Refused(Exception):
    """What pScheduler is told on standard error, with exit code 1."""


def seconds(text):
    """Seconds of a duration of ISO 8601."""
    found = DURATION.fullmatch(str(text))
    if not found or not any(found.groups()):
        raise Refused("%r is no duration of ISO 8601" % (text,))
    parts = [float(part or 0) for part in found.groups()]
    return sum(part * unit for part, unit in zip(parts, (604800, 86400, 3600, 60, 1)))


def duration(value):
    """A duration of ISO 8601 from seconds."""
    return "PT%sS" % (("%.9f" % value).rstrip("0").rstrip("."))


def configured():
    """Program and ports; the file is for what differs on this host."""
    found = {"program": "linerate", "port": 5210, "stamp-port": 862}
    try:
        with open(os.environ.get("LINERATE_PSCHEDULER", CONFIGURATION), encoding="utf-8") as file:
            found.update(json.load(file))
    except FileNotFoundError:
        pass
    return found


def can_run(test):
    kind = test.get("type")
    if kind not in FLAGS:
        return {"can-run": False, "reasons": ["linerate has no test of type %s here" % kind]}
    spec = test.get("spec") or {}
    reasons = [
        "linerate does not take %s" % key
        for key in spec if key not in FLAGS[kind] and not (kind == "latency" and spec[key] is False)
    ]
    if "dest" not in spec:
        reasons.append("the spec has no dest")
    takes = PROTOCOLS.get(kind)
    if takes and spec.get("protocol", takes) != takes:
        reasons.append("of protocols linerate takes %s here" % takes)
    if kind == "latency":
        reasons += latency_reasons(spec)
    if "flow-label" in spec and spec.get("ip-version") != 6:
        reasons.append("a flow label takes ip-version 6")
    if spec.get("udp"):
        reasons += ["%s is none of UDP" % key for key in TCP_ONLY if key in spec]
    return {"can-run": not reasons, **({"reasons": reasons} if reasons else {})}


def latency_reasons(spec):
    reasons = []
    if spec.get("flip") and "source" not in spec:
        reasons.append("flip takes a source")
    bytes_ = spec.get("packet-padding", STAMP_EXTENDED_BYTES) + STAMP_BYTES
    if "ip-tos" in spec and comes_back(spec) and bytes_ < STAMP_EXTENDED_BYTES:
        room = STAMP_EXTENDED_BYTES - STAMP_BYTES
        reasons.append("the class of answers takes a packet-padding of %d and more" % room)
    return reasons


def comes_back(spec):
    """Whether the delay asked for is that of the answers: the end that measures receives."""
    return bool(spec.get("flip")) != bool(spec.get("reverse"))


def needs_s(test):
    """Seconds that a run takes by itself."""
    spec = test["spec"]
    if test["type"] == "latency":
        count, interval = (spec.get(key, usual) for key, usual in LATENCY.items())
        return (count - 1) * interval + (spec.get("packet-timeout") or TIMEOUT_S)
    if test["type"] == "throughput":
        return seconds(spec.get("duration", "PT10S")) + seconds(spec.get("omit", "PT0S"))
    if "deadline" in spec:
        return seconds(spec["deadline"])
    count = int(spec.get("count", 5))
    interval = seconds(spec.get("interval", "PT1S"))
    return (count - 1) * interval + seconds(spec.get("timeout", "PT1S"))


def command(test, participants):
    """The command line of a run."""
    kind, spec, own = test["type"], with_address(test["spec"]), configured()
    dest = spec["dest"]
    if kind == "latency":
        spec, words = stamp(spec, own)
    elif kind == "throughput":
        port = next((it["port"] for it in participants[1:] if it and "port" in it), own["port"])
        program = "udp" if spec.get("udp") else "tcp"
        words = [program, dest, "-p", str(port), "--wait", "%ds" % (BESIDE_S // 2)]
        if "source" in spec and "local-address" not in spec:
            words += ["-B", spec["source"]]
    else:
        words = ["ping", dest, "-c", str(spec.get("count", 5)), "--warmup", "0", "--samples"]
    for key, flag in FLAGS[kind].items():
        value = spec.get(key)
        if flag is None or value is None or value is False or key == "count":
            continue
        if key in TIMES:
            words += [flag, "%dms" % round(seconds(value) * 1000)]
        elif key in SECONDS:
            words += [flag, "%dns" % round(value * 1e9)]
        elif key == "ip-tos":
            words += [flag, str(int(value) >> 2)]
        else:
            words += [flag] if value is True else [flag, str(value)]
    if "ip-version" in spec:
        words.append("-%d" % spec["ip-version"])
    return [own["program"], *words, "--json", "--no-save"]


def with_address(spec):
    """The spec with an address for the name of the end that measures: one that the other end has
    the like of."""
    here, there = ("dest", "source") if spec.get("flip") else ("source", "dest")
    if here not in spec or is_address(spec[here]):
        return spec
    family = {4: socket.AF_INET, 6: socket.AF_INET6}.get(spec.get("ip-version"), 0)
    try:
        mine, other = (
            socket.getaddrinfo(spec[end], None, family, socket.SOCK_DGRAM) for end in (here, there)
        )
    except OSError as error:
        raise Refused("%s or %s: %s" % (spec[here], spec[there], error.strerror)) from error
    for wanted in other:
        for found in mine:
            if found[0] == wanted[0]:
                version = 6 if found[0] == socket.AF_INET6 else 4
                return {**spec, here: found[4][0], "ip-version": version}
    raise Refused("%s and %s have no addresses of one family" % (spec[here], spec[there]))


def is_address(host):
    try:
        return bool(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def stamp(spec, own):
    """The spec with what is usual, and the first words; flipped, the destination measures."""
    here, there = spec.get("source"), spec["dest"]
    if spec.get("flip"):
        here, there = there, here
    words = ["stamp", there, "--samples"] + (["-I", here] if here else [])
    if "ip-tos" in spec and comes_back(spec):
        words += ["--reply-dscp", str(int(spec["ip-tos"]) >> 2)]
    full = {"ctrl-port": own["stamp-port"], **LATENCY, **spec}
    if "packet-padding" in spec:
        full["packet-padding"] += STAMP_BYTES
    full["packet-timeout"] = spec.get("packet-timeout") or TIMEOUT_S
    return full, words


def run(asked):
    test = asked["test"]
    if asked.get("participant", 0) != 0:
        return {"schema": 1, "succeeded": True, "diags": "linerate serve answers", "result": {}}
    wait_for(asked.get("schedule", {}).get("start"))
    words = command(test, asked.get("participant-data") or [{}])
    within = needs_s(test) + BESIDE_S
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=within, check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return failed(words, "it took more than %d s" % within)
    except OSError as error:
        return failed(words, "%s: %s" % (words[0], error.strerror))
    try:
        record = json.loads(done.stdout)
    except ValueError:
        record = {}
    if done.returncode != 0 or record.get("status") != "ok":
        ended = {1: "nothing was answered"}.get(done.returncode, "code %d" % done.returncode)
        return failed(words, done.stderr.strip() or ended)
    made = {"throughput": throughput, "rtt": round_trip, "latency": one_way}[test["type"]]
    try:
        found = made(record, test["spec"])
    except Refused as error:
        return failed(words, str(error))
    said = found.pop("said", [])
    result = {"schema": 1, "succeeded": True, **found}
    result["diags"] = "\n".join([" ".join(words), "record %s" % record["id"], *said])
    return {"schema": 1, "succeeded": True, "diags": result["diags"], "result": result}


def failed(words, error):
    return {"schema": 1, "succeeded": False, "diags": " ".join(words), "error": error}


def wait_for(start):
    """Sleeps until shortly after the time that both participants begin at."""
    if start is None:
        return
    at = datetime.datetime.fromisoformat(start.replace("Z", "+00:00"))
    wait = (at - datetime.datetime.now(datetime.timezone.utc)).total_seconds() + AFTER_BEGIN_S
    if wait > 3600:
        raise Refused("%s is more than an hour away" % start)
    time.sleep(max(wait, 0))


def rows(record, metric, stat="value", **more):
    """Values of a summary's rows."""
    fits = lambda row: all(row.get(key) == value for key, value in more.items())
    return [
        row["value"] for row in record["summary"]
        if row["metric"] == metric and row["stat"] == stat and row.get("flow") is None and fits(row)
    ]


def throughput(record, spec):
    """Result of the test throughput; the sender's rate is of what it sent, as with iperf3."""
    way = "down" if spec.get("reverse") else "up"
    flows = [flow for flow in record["flows"] if flow["direction"] == way]
    sent = [of_sender(flow) for flow in flows]
    end = max((it["end"] for it in sent), default=0)
    bits = sum(it["throughput-bits"] for it in sent)
    whole = {"start": 0, "end": end, "throughput-bits": bits, "throughput-bytes": bits / 8}
    for key, metric in (
        ("receiver-throughput-bits", "goodput_bps"), ("retransmits", "retransmits"),
        ("sent", "datagrams_sent"), ("lost", "datagrams_lost"),
    ):
        found = rows(record, metric, direction=way)
        if found:
            whole[key] = found[0] if key.startswith("receiver") else int(found[0])
    return {
        "intervals": intervals(record, way),
        "summary": {"summary": whole, "streams": sent},
    }


def of_sender(flow):
    sender = flow["sender"] or {}
    span_s = (sender.get("span_ns") or 0) / 1e9
    sent = sender.get("bytes_measured") or 0
    bits = sent * 8 / span_s if span_s else 0
    return {
        "stream-id": flow["flow"], "start": 0, "end": span_s,
        "throughput-bits": bits, "throughput-bytes": bits / 8,
    }


def intervals(record, way):
    """What the receiver got in each interval."""
    series = [
        it for it in record["series"]
        if it["metric"] == "goodput_bps" and it["direction"] == way and it["flow"] is not None
    ]
    count = max((len(it["values"]) for it in series), default=0)
    found = []
    for at in range(count):
        streams = []
        for it in series:
            if at < len(it["values"]) and it["values"][at] is not None:
                start = it["t_ns"][at - 1] / 1e9 if at else 0
                bits = it["values"][at]
                streams.append({
                    "stream-id": it["flow"], "start": start, "end": it["t_ns"][at] / 1e9,
                    "throughput-bits": bits, "throughput-bytes": bits / 8,
                })
        if streams:
            bits = sum(it["throughput-bits"] for it in streams)
            start = min(it["start"] for it in streams)
            whole = {
                "start": start, "end": max(it["end"] for it in streams),
                "throughput-bits": bits, "throughput-bytes": bits / 8,
            }
            found.append({"streams": streams, "summary": whole})
    return found


def round_trip(record, _spec):
    """Result of the test rtt, as the program saw it, which is what ping prints."""
    result = {}
    for key, stat in (("min", "min"), ("max", "max"), ("mean", "mean"), ("stddev", "stddev")):
        found = rows(record, "rtt_ns", stat)
        if found:
            result[key] = duration(found[0] / 1e9)
    sent = int(rows(record, "probes_sent")[0])
    received = int(rows(record, "probes_answered")[0])
    result.update({
        "sent": sent, "received": received, "lost": sent - received,
        "loss": (sent - received) / sent if sent else 1.0,
    })
    for key, metric in (("duplicates", "duplicates"), ("reorders", "reordered")):
        found = rows(record, metric)
        result[key] = int(found[0]) if found else 0
    series = next((it for it in record["series"] if it["metric"] == "rtt_ns"), {"values": []})
    result["roundtrips"] = [
        {"seq": at + 1, "rtt": duration(value / 1e9)}
        for at, value in enumerate(series["values"]) if value is not None
    ]
    return result


def one_way(record, spec):
    """Result of the test latency; delays are those that linerate found trustworthy."""
    way = "down" if comes_back(spec) else "up"
    clocks = (record.get("clocks") or [{"state": "unsynchronised"}])[0]
    if clocks["state"] == "unsynchronised":
        raise Refused("the clocks of both ends are not synchronised, and their offset could not "
                      "be estimated: no delay of one way is known")
    said = ["clocks: %s, within %d ns" % (clocks["state"].replace("_", " "), clocks["error_ns"])]
    if clocks["state"] == "offset_estimated":
        said.append("the offset is the one that makes the smallest delays of both ways equal")
    if clocks["claim_refuted"]:
        said.append("the packets prove the error wrong that both ends state for their clocks")
    delays = next(
        it["values"] for it in record["series"]
        if it["metric"] == "owd_ns" and it["direction"] == way
    )
    delays = [value / 1e9 for value in delays if value is not None]
    counts, more = packets(record, way)
    said += more + ["of %d packets the delay is known" % len(delays)]
    return {
        **counts,
        "max-clock-error": round(clocks["error_ns"] / 1e6, 6),
        "histogram-latency": histogram(delays, spec.get("bucket-width", 0.001)),
        "said": said,
    }


def packets(record, way):
    """Packets of one way, and what is to be said of their counts."""
    total = lambda metric: int(rows(record, metric)[0])
    sent, unanswered = total("probes_sent"), total("probes_sent") - total("probes_answered")
    lost = {}
    for row in record["summary"]:
        if row["metric"] == "loss_one_way_ratio":
            lost[row["direction"]] = round(row["value"] * row["n"])
    said = []
    # Losses before the first and after the last answer may be of either way: they count as lost.
    unknown = unanswered - sum(lost.values())
    if unknown:
        said.append("of %d lost packets the way is not known: they count as lost" % unknown)
    if way == "down":
        sent -= lost.get("up", 0)
    missing = lost.get(way, 0) + unknown
    late = rows(record, "reordered_one_way", direction=way) or rows(record, "reordered")
    counts = {
        "packets-sent": sent, "packets-received": sent - missing, "packets-lost": missing,
        "packets-duplicated": total("duplicates"), "packets-reordered": int(late[0]),
    }
    if not lost:
        said.append("the reflector does not count: losses and order are those of both ways")
    return counts, said


def histogram(delays, width):
    """Delays by width, to two decimals, as owping's and twping's programs have them."""
    found = {}
    for delay in delays:
        # 0 is added for -0.00.
        key = "%.2f" % (round(delay / width, 2) + 0)
        found[key] = found.get(key, 0) + 1
    return found


def merged(asked):
    """The result of the participant that measured."""
    first = (asked.get("results") or [None])[0]
    if not first:
        return {"succeeded": False, "diags": "", "error": "the first participant left no result"}
    if not first.get("succeeded"):
        return {"succeeded": False, "diags": first.get("diags", ""), "error": first.get("error", "")}
    return first["result"]


def participant_data(asked):
    """Where the server of the second participant is."""
    return {"schema": 1, "port": configured()["port"]} if asked.get("participant") == 1 else {}


def main(called):
    programs = {
        "can-run": can_run,
        "duration": lambda test: {"duration": duration(needs_s(test) + BESIDE_S)},
        "participant-data": participant_data,
        "run": run,
        "merged-results": merged,
    }
    try:
        print(json.dumps(programs[called](json.load(sys.stdin))))
    except (Refused, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit("linerate %s: %s: %s" % (called, type(error).__name__, error))
