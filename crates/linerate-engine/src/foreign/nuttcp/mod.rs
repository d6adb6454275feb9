//! nuttcp from either side (spec/nuttcp.md).

pub(crate) mod client;
mod data_ports;
pub(crate) mod fail;
mod layout;
mod served;
mod server;
mod tcp_server;
mod udp_client;
mod udp_server;

pub use client::{NuttcpExtras, ToldInterval, run};
pub use data_ports::DataPorts;
pub use server::serve_connection;
pub(crate) use udp_client::measure_udp;
pub use udp_client::run_udp;

use linerate_proto::ttcp::pattern;

use crate::flow::tcp::endpoint::StreamRules;

/// The manner of nuttcp, ttcp's heir: printable characters. Its receivers tell one sum for all
/// streams, so a sender counts its own; they read one buffer from each stream in turn.
const RULES: StreamRules = StreamRules {
    content: pattern,
    one_sided: true,
    shares: false,
    round_robin: true,
    steady: false,
};
