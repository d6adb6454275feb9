//! WebSockets of the page, by plain TCP clients over loopback.
#![cfg(feature = "web")]

use std::io::{Read, Write};
use std::net::IpAddr;

use linerate_server::admission::ServerLimits;
use linerate_sys::tcp::{self, TcpOptions};
use serde_json::Value;

use crate::web::{PATIENCE, call, connect, with_server};

#[test]
fn a_websocket_gives_short_messages_back_at_once() {
    with_server(ServerLimits::default(), |server, _| {
        let mut stream = connect(server);
        // The key and its answer are those of RFC 6455 §1.3.
        let request = format!(
            "GET /api/v1/echo HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it takes a request");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).expect("a head"), 1);
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        // A binary message of 5 bytes, masked by zeros (§5.2), comes back without a mask.
        stream.write_all(b"\x82\x85\0\0\0\0hello").expect("open");
        let mut back = [0; 7];
        stream.read_exact(&mut back).expect("an echo");
        assert_eq!(&back, b"\x82\x05hello");
        // One of 65 bytes is too long: the connection ends.
        let long = [b"\x82\xc1\0\0\0\0".as_slice(), &[7; 65]].concat();
        stream.write_all(&long).expect("open");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.first().is_none_or(|byte| *byte == 0x88), "{rest:?}");
    });
}

#[test]
fn idle_websockets_of_one_address_leave_room_for_others() {
    // Half of the connections are for HTTP, and three quarters of those for one address.
    with_server(ServerLimits { connections: 32, ..ServerLimits::default() }, |server, _| {
        let open = |from: [u8; 4]| {
            let local = Some(IpAddr::from(from));
            let mut stream = tcp::connect(server, local, &TcpOptions::default(), PATIENCE)
                .expect("the server listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time");
            let request = format!(
                "GET /api/v1/echo HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                 Sec-WebSocket-Version: 13\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).expect("it takes a request");
            let mut head = [0; 12];
            let whole = stream.read_exact(&mut head).is_ok();
            (stream, whole && &head == b"HTTP/1.1 101")
        };
        // Those of three addresses would have every place.
        let idle: Vec<_> = [2, 3, 4]
            .into_iter()
            .flat_map(|last| std::iter::repeat_n([127, 0, 7, last], 8))
            .map(open)
            .collect();
        assert!(idle.iter().take(16).all(|(_, is_open)| *is_open), "there are sixteen places");
        for _ in 0..3 {
            let (status, about) = call(server, "GET", "/api/v1/server", &Value::Null);
            assert_eq!(status, 200, "{about}");
        }
        let (_, is_open) = open([127, 0, 0, 1]);
        assert!(is_open, "and one that stays is served beside them");
    });
}
