//! How iperf3 prints its documents: keys in the order of 3.21, tabs, whole numbers without a point.
//! Readers that take them line by line find what they look for where they look for it.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Every key of a document; of two that stand in one object the first comes first.
const ORDER: &str = "\
    event data connected version system_info timestamp time timesecs timemillisecs \
    connecting_to accepted_connection host port cookie tcp_mss tcp_mss_default protocol \
    num_streams blksize omit duration socket local_host local_port remote_host remote_port \
    streams sum sum_sent sum_received sum_bidir_reverse sum_sent_bidir_reverse \
    sum_received_bidir_reverse cpu_utilization_percent host_total host_user host_system \
    remote_total remote_user remote_system sender_tcp_congestion receiver_tcp_congestion \
    start intervals end seconds bytes bits_per_second blocks reverse tos target_bitrate \
    bidir fq_rate fqrate interval gso gro sock_bufsize sndbuf_actual rcvbuf_actual \
    test_start retransmits snd_cwnd snd_wnd rtt rttvar pmtu reorder max_snd_cwnd \
    max_snd_wnd max_rtt min_rtt mean_rtt jitter_ms lost_packets packets lost_percent \
    out_of_order omitted sender receiver udp error title extra_data server_output_json \
    server_output_text";

/// A whole document with the end of its last line.
pub fn pretty(document: &Value) -> String {
    let mut text = String::new();
    write(&mut text, document, Some(0));
    text.push('\n');
    text
}

/// One line of `--json-stream`.
pub fn line_of(event: &str, data: &Value) -> String {
    let mut text = String::new();
    let line = Value::Object(Map::from_iter([
        ("event".to_owned(), event.into()),
        ("data".to_owned(), data.clone()),
    ]));
    write(&mut text, &line, None);
    text.push('\n');
    text
}

/// Writes a value; with a depth on lines of its own.
fn write(text: &mut String, value: &Value, depth: Option<usize>) {
    let deeper = depth.map(|depth| depth + 1);
    match value {
        Value::Object(members) => {
            text.push('{');
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_cached_key(|(key, _)| key_position(key));
            for (at, (key, value)) in members.into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                new_line(text, deeper);
                let _ = write!(text, "{}:", Value::from(key.as_str()));
                text.push_str(if depth.is_some() { "\t" } else { "" });
                write(text, value, deeper);
            }
            new_line(text, depth);
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                text.push_str(match (at, depth) {
                    (0, _) => "",
                    (_, Some(_)) => ", ",
                    (_, None) => ",",
                });
                write(text, value, deeper);
            }
            text.push(']');
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => {
                let _ = write!(text, "{whole:.0}");
            }
            _ => {
                let _ = write!(text, "{number}");
            }
        },
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

fn new_line(text: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        text.push('\n');
        text.extend(std::iter::repeat_n('\t', depth));
    }
}

/// Unknown keys stand last, in their own order.
fn key_position(key: &str) -> usize {
    ORDER.split(' ').position(|known| known == key).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_stands_on_the_page_as_iperf3_prints_it() {
        let document = json!({
            "error": "no",
            "end": {},
            "intervals": [],
            "start": {
                "version": "iperf 3.21",
                "connected": [{ "socket": 5, "local_host": "::1" }, { "socket": 7 }],
                "fq_rate": 0.0,
                "timestamp": { "timesecs": 1, "time": "now" },
            },
        });
        // The layout of iperf3 3.21 -J; a refused connection, with streams put in.
        let expected = "{\n\t\"start\":\t{\n\t\t\"connected\":\t[{\n\t\t\t\t\"socket\":\t5,\n\
                        \t\t\t\t\"local_host\":\t\"::1\"\n\t\t\t}, {\n\t\t\t\t\"socket\":\t7\n\
                        \t\t\t}],\n\t\t\"version\":\t\"iperf 3.21\",\n\t\t\"timestamp\":\t{\n\
                        \t\t\t\"time\":\t\"now\",\n\t\t\t\"timesecs\":\t1\n\t\t},\n\
                        \t\t\"fq_rate\":\t0\n\t},\n\t\"intervals\":\t[],\n\t\"end\":\t{\n\t},\n\
                        \t\"error\":\t\"no\"\n}\n";
        assert_eq!(pretty(&document), expected);
        let line = line_of("end", &json!({ "b": 1.5, "bytes": [1, 2.0] }));
        assert_eq!(line, "{\"event\":\"end\",\"data\":{\"bytes\":[1,2],\"b\":1.5}}\n");
    }
}
