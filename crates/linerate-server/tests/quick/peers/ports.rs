//! Ports for servers under test, shared with the tests of the program.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;

/// Below the ports that the kernel gives to clients (net.ipv4.ip_local_port_range).
const FIRST: u16 = 12_000;
const COUNT: u16 = 19_000;

/// What this process has reserved: abstract names that end with it.
static RESERVED: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());

/// The first of so many ports under each other that no socket of this host has for TCP or UDP,
/// and that no other test, of this process or another, gets.
///
/// The kernel's tables are read. A socket that listens for a moment to try a port would be
/// inherited by a program that another thread starts in that moment: the server under test then
/// finds its port taken, and a test that waits for a listener finds one too early.
pub(crate) fn reserve(count: u16) -> u16 {
    let start = (std::process::id() % u32::from(COUNT / 100)) as u16 * 100;
    (0..COUNT / count)
        .map(|at| FIRST + (start + at * count) % (COUNT - count))
        .find(|&first| (first..first + count).all(|port| !in_use(port) && reserved(port)))
        .expect("ports are left")
}

/// Whether this process could reserve the port.
fn reserved(port: u16) -> bool {
    let name = SocketAddr::from_abstract_name(format!("linerate-test-port-{port}"));
    let socket = name.and_then(|name| UnixDatagram::bind_addr(&name));
    let taken = socket.map(|socket| RESERVED.lock().expect("nobody panics with it").push(socket));
    taken.is_ok()
}

/// Whether a row of the kernel's tables has this local port.
fn in_use(port: u16) -> bool {
    let end = format!(":{port:04X}");
    let local = |row: &str| row.split_whitespace().nth(1).is_some_and(|own| own.ends_with(&end));
    ["tcp", "tcp6", "udp", "udp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(format!("/proc/net/{table}")).ok())
        .any(|table| table.lines().skip(1).any(local))
}
