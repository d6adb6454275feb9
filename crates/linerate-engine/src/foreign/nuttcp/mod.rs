//! nuttcp from either side (spec/nuttcp.md).

pub(crate) mod client;
mod control;
mod data_ports;
mod layout;
mod server;
mod session;
mod udp_client;
mod udp_server;

pub use client::run;
pub use data_ports::DataPorts;
pub use server::serve;
pub use session::{Extras, ToldInterval};
pub(crate) use udp_client::measure_udp;
pub use udp_client::run_udp;

use linerate_proto::ttcp::pattern;

use crate::flow::tcp::endpoint::Manner;

/// The manner of nuttcp, ttcp's heir: printable characters. Its receivers tell one sum for all
/// streams, so a sender counts its own; they read one buffer from each stream in turn.
const MANNER: Manner = Manner { content: pattern, one_sided: true, shares: false, dealt: true };
