//! Headers of the Internet protocols, as far as probes need them.

pub mod checksum;
pub mod icmp;
