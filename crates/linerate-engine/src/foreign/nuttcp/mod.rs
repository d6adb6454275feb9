//! nuttcp from either side (spec/nuttcp.md).

pub(crate) mod client;
mod data_ports;
pub(crate) mod fail;
mod layout;
mod served;
mod server;
mod tcp_server;
pub(crate) mod udp_client;
mod udp_server;

pub use client::{Extras, ToldInterval, run};
pub use data_ports::DataPorts;
pub use server::serve;
pub(crate) use udp_client::measure_udp;
pub use udp_client::run_udp;

use linerate_core::time::MonoTime;
use linerate_proto::ttcp::{Marks, pattern};

use crate::flow::tcp::endpoint::StreamRules;
use crate::flow::udp::endpoint::Endpoint;

/// The manner of nuttcp, ttcp's heir: printable characters. Its receivers tell one sum for all
/// streams, so a sender counts its own; they read one buffer from each stream in turn.
const RULES: StreamRules =
    StreamRules { content: pattern, one_sided: true, shares: false, round_robin: true };

/// Sends a mark that is due. An error is that of a mark before: it is told once, and this one
/// leaves.
fn send_due(marks: &mut Marks, now: MonoTime, endpoint: &Endpoint) {
    let Some(mark) = marks.due(now) else { return };
    for socket in endpoint.sockets() {
        if socket.send_when_room(&mark).is_err() {
            let _ = socket.send_when_room(&mark);
        }
    }
}
