//! iperf 2 from either side (spec/iperf2.md).

pub(crate) mod address_validation;
pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod udp_arrivals;
mod udp_back;
mod udp_candidates;
pub(crate) mod udp_client;
mod udp_layout;
mod udp_server;
mod udp_session;
mod udp_waiting;

pub use address_validation::{AddressValidation, TrustedNetwork};
pub use client::{Return, run_with_return};
pub use linerate_proto::iperf2::{BounceResult, UdpCounted};
pub use server::serve_connection;
pub use udp_back::UdpSentBack;
pub(crate) use udp_client::measure_udp;
pub use udp_client::{UdpExtras, run_udp};
pub(crate) use udp_layout::DATAGRAM_BYTES;
pub use udp_server::UdpPort;
pub use udp_session::{UdpAside, UdpMoved, UdpSeen, UdpServing, UdpWatch};
