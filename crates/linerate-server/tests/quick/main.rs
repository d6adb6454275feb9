//! Tests of the server that need no laboratory and judge nothing that other work on the machine
//! could spoil: programs of every protocol against it on loopback, and what it must refuse.

mod abuse;
mod abuse_http2;
mod abuse_tcp;
mod acme;
mod bounds;
mod contradicted;
mod contradicted_nuttcp;
#[cfg(feature = "web")]
mod corpora;
mod crowd;
mod garbage;
#[cfg(feature = "tls")]
mod hub;
mod iperf2;
mod iperf2_udp;
mod iperf3;
#[cfg(feature = "web")]
#[path = "../../../../fuzz/mutations.rs"]
mod mutations;
mod nuttcp;
mod nuttcp_udp;
mod peers;
mod rows_add_up;
mod rules;
#[cfg(feature = "scale")]
#[path = "../../../linerate-mesh/src/tests/started.rs"]
#[allow(dead_code, reason = "the suite of linerate-mesh needs more of it")]
mod started;
mod study_resume;
mod tcp_means;
mod throughput;
mod tls;
mod visitors;
mod web;
mod web_datagrams;
mod web_sockets;

#[cfg(feature = "scale")]
use peers::ports;
