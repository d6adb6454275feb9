//! Metrics that the kernel caches of earlier TCP connections to a host (generic netlink family
//! `tcp_metrics`, linux/tcp_metrics.h, Linux 3.6).

use std::net::IpAddr;

use linerate_core::record::CachedMetrics;
use netlink_packet_core::NLM_F_ACK;

use super::generic::GenericSocket;
use super::socket::{attribute, attributes_of};
use crate::{Error, Result};

const TCP_METRICS_CMD_GET: u8 = 1;
const ADDR_IPV4: u16 = 1;
const ADDR_IPV6: u16 = 2;
const VALS: u16 = 6;
/// Values of enum tcp_metric_index, plus 1, which are the attribute types.
const SSTHRESH: u16 = 3;
const CWND: u16 = 4;
const REORDERING: u16 = 5;
const RTT_US: u16 = 6;
const RTTVAR_US: u16 = 7;

/// Cached metrics of `addr` in the namespace of the calling thread; `None` without an entry.
/// # Errors
/// When the kernel does not answer.
pub fn cached_metrics(addr: IpAddr) -> Result<Option<CachedMetrics>> {
    let failed = |source| Error::new("look up TCP metrics of", addr, source);
    let mut socket = GenericSocket::open("tcp_metrics").map_err(failed)?;
    let wish = match addr {
        IpAddr::V4(addr) => attribute(ADDR_IPV4, &addr.octets()),
        IpAddr::V6(addr) => attribute(ADDR_IPV6, &addr.octets()),
    };
    match socket.send_request(TCP_METRICS_CMD_GET, NLM_F_ACK, &wish) {
        Ok(replies) => Ok(replies.iter().find_map(|reply| metrics_of(reply))),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn metrics_of(attributes: &[u8]) -> Option<CachedMetrics> {
    let (_, values) = attributes_of(attributes).find(|(kind, _)| *kind == VALS)?;
    let value = |wanted| {
        let (_, value) = attributes_of(values).find(|(kind, _)| *kind == wanted)?;
        value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
    };
    Some(CachedMetrics {
        rtt_us: value(RTT_US),
        rttvar_us: value(RTTVAR_US),
        ssthresh: value(SSTHRESH),
        cwnd: value(CWND),
        reordering: value(REORDERING),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_by_their_attributes_and_nothing_from_a_cut_one() {
        // enum tcp_metric_index: RTT 0, RTTVAR 1, SSTHRESH 2, CWND 3, REORDERING 4, RTT_US 5.
        let values = [attribute(3, &20u32.to_ne_bytes()), attribute(6, &7000u32.to_ne_bytes())];
        let reply = attribute(VALS, &values.concat());
        let expected =
            CachedMetrics { ssthresh: Some(20), rtt_us: Some(7000), ..CachedMetrics::default() };
        assert_eq!(metrics_of(&reply), Some(expected));
        for len in 0..reply.len() {
            assert_ne!(metrics_of(&reply[..len]), Some(expected), "{len} bytes");
        }
    }

    #[test]
    fn a_host_never_heard_of_is_not_remembered() {
        // 198.51.100.0/24 is for documentation (RFC 5737).
        let metrics = cached_metrics(IpAddr::from([198, 51, 100, 7]));
        assert!(matches!(metrics, Ok(None)), "{metrics:?}");
    }
}
