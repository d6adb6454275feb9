//! The manifests of `docs/kubernetes`: what the reference of the Kubernetes API demands of the
//! kinds that they use (v1 List, Namespace; apps/v1 DaemonSet), and that the program takes their
//! arguments. No cluster is asked.

use std::collections::BTreeSet;

use crate::support::{linerate, stderr};
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kubernetes/");

fn read(file: &str) -> Value {
    let text = std::fs::read_to_string(format!("{FOLDER}{file}")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

fn text<'a>(of: &'a Value, path: &str) -> &'a str {
    of.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("{path} of {of}"))
}

fn items() -> Vec<Value> {
    read("linerate.json")["items"].as_array().expect("items").clone()
}

fn daemons() -> Vec<Value> {
    items().into_iter().filter(|it| it["kind"] == "DaemonSet").collect()
}

/// A label of DNS (RFC 1123), which names of objects and containers have to be.
fn is_dns_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = !name.starts_with('-') && !name.ends_with('-');
    (1..=63).contains(&name.len()) && name.bytes().all(plain) && ends
}

#[test]
fn every_object_has_what_its_kind_demands() {
    let list = read("linerate.json");
    assert_eq!((text(&list, "/apiVersion"), text(&list, "/kind")), ("v1", "List"));
    let mut names = BTreeSet::new();
    for item in items() {
        let kind = text(&item, "/kind").to_owned();
        let version = if kind == "Namespace" { "v1" } else { "apps/v1" };
        assert_eq!(text(&item, "/apiVersion"), version);
        let name = text(&item, "/metadata/name").to_owned();
        assert!(is_dns_label(&name) && names.insert((kind, name)), "{item}");
    }
    let daemons = daemons();
    assert_eq!(daemons.len(), 2, "one in each network");
    for daemon in &daemons {
        assert_eq!(text(daemon, "/metadata/namespace"), "linerate");
        // spec.selector has to match spec.template.metadata.labels.
        let wanted = daemon.pointer("/spec/selector/matchLabels").expect("a selector");
        let labels = daemon.pointer("/spec/template/metadata/labels").expect("labels");
        for (key, value) in wanted.as_object().expect("labels") {
            assert_eq!(labels.get(key), Some(value));
        }
        for container in containers(daemon) {
            assert!(is_dns_label(text(&container, "/name")));
            assert!(!text(&container, "/image").is_empty());
            check_ports(&container, daemon);
        }
    }
    let selector = |at: usize| daemons[at].pointer("/spec/selector/matchLabels").cloned();
    assert_ne!(selector(0), selector(1), "else each would take the other's pods");
    let kustomization = read("kustomization.yaml");
    assert_eq!(text(&kustomization, "/kind"), "Kustomization");
    assert_eq!(kustomization["resources"], serde_json::json!(["linerate.json"]));
}

fn containers(daemon: &Value) -> Vec<Value> {
    let found = daemon.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    found.expect("containers").clone()
}

fn check_ports(container: &Value, daemon: &Value) {
    let host = daemon.pointer("/spec/template/spec/hostNetwork") == Some(&Value::Bool(true));
    let mut seen = BTreeSet::new();
    for port in container["ports"].as_array().expect("ports") {
        let name = text(port, "/name");
        // An IANA_SVC_NAME has 15 characters at most.
        assert!(is_dns_label(name) && name.len() <= 15 && seen.insert(name), "{port}");
        let number = port["containerPort"].as_u64().expect("a number");
        assert!((1..65_536).contains(&number), "{port}");
        assert!(["TCP", "UDP"].contains(&text(port, "/protocol")), "{port}");
        // In the node's network a hostPort has to be the containerPort.
        let at_host = port.get("hostPort").and_then(Value::as_u64);
        assert_eq!(at_host, host.then_some(number), "{port}");
    }
    let probed = container.pointer("/readinessProbe/tcpSocket/port").and_then(Value::as_u64);
    let known: Vec<_> = container["ports"].as_array().expect("ports").to_vec();
    assert!(known.iter().any(|it| it["containerPort"].as_u64() == probed), "{container}");
}

#[test]
fn the_program_takes_the_arguments_and_listens_where_the_ports_are() {
    for daemon in daemons() {
        for container in containers(&daemon) {
            assert_eq!(container["command"], serde_json::json!(["linerate"]));
            let words = container["args"].as_array().expect("arguments");
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            let of = |flag: &str| {
                let at = words.iter().position(|word| *word == flag).expect(flag);
                words[at + 1]
            };
            let ports = container["ports"].as_array().expect("ports");
            let has = |name: &str, port: &str| {
                let found = ports.iter().find(|it| it["name"] == name).expect(name);
                assert_eq!(found["containerPort"].to_string(), port);
            };
            has("tcp", of("--port"));
            has("udp", of("--port"));
            has("stamp", of("--stamp-port"));
            // An argument $(NAME) is the value of the variable NAME, which has to be there.
            let name = of("--bind").trim_start_matches("$(").trim_end_matches(')');
            assert_eq!(text(&container, "/env/0/name"), name);
            let field = text(&container, "/env/0/valueFrom/fieldRef/fieldPath");
            assert!(["status.hostIP", "status.podIP"].contains(&field), "{field}");
            // With --help at the end nothing is started, and what stands before it is read.
            let mut words: Vec<&str> = words
                .iter()
                .map(|word| if word.starts_with("$(") { "127.0.0.1" } else { *word })
                .collect();
            words.push("--help");
            let output = linerate(&words);
            assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
            words.insert(1, "--no-such-flag");
            assert_eq!(linerate(&words).status.code(), Some(2), "the check can fail");
        }
    }
}
