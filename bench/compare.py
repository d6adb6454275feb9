"""What the comparisons share: laboratories, processes and their processor time, medians.

Everything is run side by side in turn (A B A B ...), so that a machine whose speed drifts slows
both; the ratios are taken pair by pair.
"""

import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time

LINERATE = os.environ.get("LINERATE", "target/release/linerate")
TICKS = os.sysconf("SC_CLK_TCK")
CONGESTION = "cubic"


class Lab:
    """A laboratory that stands while the block runs; None is this host."""

    def __init__(self, plan):
        self.plan, self.process = plan, None

    def __enter__(self):
        if self.plan is None:
            return self
        self.process = subprocess.Popen(
            [LINERATE, "lab", "run", "/dev/stdin"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(self.plan)
        self.process.stdin.close()
        for _ in range(100):
            if self.run("a", ["true"]).returncode == 0:
                return self
            time.sleep(0.1)
        sys.exit("the laboratory does not stand")

    def __exit__(self, *_):
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(10)

    def command(self, host, command):
        if self.plan is None:
            return command
        return [LINERATE, "lab", "shell", host, "--lab", str(self.process.pid), "--", *command]

    def run(self, host, command, timeout=120):
        return subprocess.run(self.command(host, command), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=timeout)

    def target(self):
        """The address of host b as host a sees it."""
        if self.plan is None:
            return "127.0.0.1"
        text = self.run("b", ["ip", "-4", "-br", "addr", "show", "dev", "eth0"]).stdout
        return re.search(r"(\d+\.\d+\.\d+\.\d+)/", text).group(1)


class Server:
    """A server on a host while the block runs."""

    def __init__(self, lab, command, host="b"):
        self.lab, self.command, self.host = lab, command, host

    def __enter__(self):
        nothing = subprocess.DEVNULL
        self.process = subprocess.Popen(self.lab.command(self.host, self.command), stdin=nothing,
                                        stdout=nothing, stderr=nothing)
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        for pid in [*descendants(self.process.pid), self.process.pid]:
            try:
                os.kill(pid, signal.SIGINT)
            except ProcessLookupError:
                pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def cpu_seconds(self):
        """User and system time so far of the server, all its threads and children."""
        return sum(cpu_of(pid) for pid in [self.process.pid, *descendants(self.process.pid)])


def cpu_of(pid):
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def descendants(pid):
    """Every process below `pid`: `lab shell` runs its command as a child."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(entry), *descendants(int(entry))]
    return found


def timed(lab, host, command):
    """Runs a command; returns its output and the user and system time of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = lab.run(host, command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: {result.stderr or result.stdout}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result.stdout, spent


def value(record, metric, stat="value", **keys):
    """One number of a record's summary."""
    for row in record["summary"]:
        same = all(row.get(key) == wanted for key, wanted in keys.items())
        if row["metric"] == metric and row["stat"] == stat and row["flow"] is None and same:
            return row["value"]
    raise KeyError((metric, stat, keys))


def median(values):
    return statistics.median(values)


def spread(values, form="{:.1f}"):
    """Median with the smallest and the largest value."""
    shown = [form.format(v) for v in (median(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]}-{shown[2]})"


def ratios(ours, theirs):
    """Pair by pair, as they were measured."""
    return [a / b for a, b in zip(ours, theirs)]


def version(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.stdout.splitlines()[0].strip()


def load(text):
    return json.loads(text)
