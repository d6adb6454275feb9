//! The hub of a mesh in this server: the suite of linerate-mesh over its HTTP, and what the page of
//! a pair is made of.

#[cfg(feature = "scale")]
use std::io::{Read, Write};
use std::net::SocketAddr;
#[cfg(feature = "scale")]
use std::net::TcpStream;
use std::sync::Arc;

use linerate_core::record::Tool;
use linerate_mesh::Hub;
use linerate_mesh::tests::{Embedded, Serving, World, holds};
#[cfg(feature = "scale")]
use linerate_mesh::tests::{TestAgent, begin_s};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::WebOptions;
use linerate_sys::stop::Stop;

#[cfg(feature = "scale")]
use crate::started::Postgres;

fn serve(hub: Arc<Hub>, local: SocketAddr) -> Serving {
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("the port is free");
    let local = server.local_addr().expect("bound");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: false, store: None, tool, origins: Vec::new() });
    server.serve_mesh(hub);
    let stop = Stop::new();
    let until = stop.clone();
    let run = move || server.run(&until, &|_: &LogEntry<'_>| {});
    Serving { local, stop, thread: std::thread::spawn(run) }
}

#[test]
fn the_embedded_hub_holds_to_it() {
    let mut world = Embedded::new(serve);
    world.start();
    holds(&mut world);
}

/// What a cell of the matrix leads to is there with a database as with a file.
#[cfg(feature = "scale")]
#[test]
fn the_page_of_a_pair_and_its_results_come_from_the_database() {
    let postgres = Postgres::start(false);
    postgres.sql("postgres", "CREATE DATABASE mesh");
    let mut world = Embedded::new(serve);
    world.database = Some(postgres.url("mesh"));
    world.start();
    let mut agent = TestAgent::joins(&world, "a");
    // Two of one hour.
    let hour_s = begin_s() - begin_s().rem_euclid(3600);
    agent.measured(hour_s, 1e6);
    agent.measured(hour_s + 10, 2e6);
    agent.gives();
    let asked = |path: &str| {
        let mut stream = TcpStream::connect(world.local).expect("the hub listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status").to_owned();
        (status, serde_json::from_str::<serde_json::Value>(body).unwrap_or_default())
    };
    let (status, found) = asked("/api/v1/series?plan=m/a&task=delay/z&metric=rtt_ns");
    assert_eq!((status.as_str(), found["values"][0]["value"].as_f64()), ("200", Some(1e6)));
    let (_, spread) = asked("/api/v1/series?plan=m/a&task=delay/z&by=hour");
    let of = |key: &str| spread["spreads"][0][key].as_u64().expect("a number");
    assert_eq!((of("n"), of("max")), (2, 2_000_000), "{spread}");
    // A sketch's percentile is at most 1/128 above the exact one.
    assert!((1_000_000..=1_007_812).contains(&of("p50")), "{spread}");
    let name = found["values"][0]["record"].as_str().expect("a record");
    let (status, record) = asked(&format!("/api/v1/results/{name}"));
    assert_eq!((status.as_str(), record["name"].as_str()), ("200", Some("delay/z")));
    let other = name.replace(&name[..4], "ffff");
    assert_eq!(asked(&format!("/api/v1/results/{other}")).0, "404");
    assert_eq!(asked("/api/v1/series?plan=m/a").0, "400", "which task");
    assert_eq!(asked("/api/v1/series?plan=n/a&task=delay/z").0, "404", "a mesh of another hub");
}
