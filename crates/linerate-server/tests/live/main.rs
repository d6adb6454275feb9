//! Tests of the server with the engine that build laboratories or measure; a test that cannot run
//! here prints `skipped: reason`. `./dev test` runs one module after another, each in a process of
//! its own, so that no module loads the machine while another measures; in one process they take
//! turns (`turn.rs`).

mod black_hole;
mod ceilings;
mod counters;
mod datagram_accounts;
mod datagram_server;
mod datagrams;
mod handshake;
mod knobs;
mod own_interface;
mod search;
#[path = "../../../linerate/tests/support/turn.rs"]
mod turn;
