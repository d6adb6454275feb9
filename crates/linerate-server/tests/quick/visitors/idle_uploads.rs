//! Uploads over a WebSocket that bring nothing.

use std::io::{Read, Write};

use linerate_sys::clock::{monotonic, sleep};

use super::{PATIENCE, Setting, connect_from, frame, head_of, upgrade, with_server};

/// The status that an upload of this address is answered with.
fn open_upload(server: std::net::SocketAddr, from: [u8; 4]) -> (std::net::TcpStream, u16) {
    let mut stream = connect_from(server, from);
    stream.write_all(upgrade(server, "upload").as_bytes()).expect("it takes a head");
    let status = head_of(&mut stream).0;
    (stream, status)
}

#[test]
fn idle_websockets_of_one_address_give_the_test_place_back() {
    with_server(Setting::default(), |server, _| {
        let idle: Vec<_> = (0..16).map(|_| open_upload(server, [127, 7, 7, 1])).collect();
        assert!(idle.iter().all(|(_, status)| *status == 101), "all are one test");
        assert_eq!(open_upload(server, [127, 7, 7, 2]).1, 503, "there is one place");
        for (mut stream, _) in idle {
            let mut end = frame(&mut stream);
            while end.0 == 0x81 {
                end = frame(&mut stream);
            }
            // A close for what the client did (RFC 6455 section 7.4.1), not the end of its time.
            assert_eq!(end, (0x88, 1008_u16.to_be_bytes().to_vec()));
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let until = monotonic() + PATIENCE;
        while open_upload(server, [127, 7, 7, 2]).1 != 101 {
            assert!(monotonic() < until, "the place is free again");
            sleep(std::time::Duration::from_millis(100));
        }
    });
}
