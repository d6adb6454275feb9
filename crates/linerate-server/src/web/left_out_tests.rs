//! The refusals of the parts that the default build leaves out, each called as the program calls
//! it: one line with the part that is missing and the programs that have it, exit code 2. What the
//! program prints of them is in the program's tests (`quick/default_build.rs`), by night.

use std::net::SocketAddr;
use std::path::Path;

use linerate_core::record::{BuildPart, Failure};

use super::datagrams::no_port::QuicPort;
use super::no_acme::{Acme, LETS_ENCRYPT};
use super::no_tls::Tls;

#[test]
fn each_part_that_the_default_build_lacks_is_refused_with_its_name_and_where_it_is() {
    let file = Path::new("FILE");
    let names = ["speed.example.org".to_owned()];
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let refusals: [(Option<Failure>, &str, BuildPart); 3] = [
        (Tls::read(file, file).err(), "--tls-cert", BuildPart::Tls),
        (Acme::new(&names, LETS_ENCRYPT, None, file, None).err(), "--acme", BuildPart::Acme),
        (QuicPort::bind(any_port).err(), "--quic-port", BuildPart::WebTransport),
    ];
    for (refusal, object, part) in refusals {
        let refusal = refusal.expect(object);
        let said = refusal.to_string();
        assert_eq!(refusal.exit_code(), 2, "{said}");
        assert!(said.contains(object) && said.ends_with(&part.refusal()), "{said}");
    }
}
