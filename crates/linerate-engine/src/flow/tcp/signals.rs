//! What a kernel tells of a connection at every sample beside what the rows of intervals show: the
//! evidence of what limits it. One table for each end of a stream; the order is that of the native
//! protocol (spec/native.md), so entries are only ever added at the end.
//!
//! A sample is two getsockopt and one ioctl. Left out: what only the end of a test needs, which is
//! in `FlowEnd::tcp_info`.

use std::os::fd::BorrowedFd;

use linerate_core::record::{FlowSide, MetricId, TcpInfo};
use linerate_sys::tcp::{self, StreamMemory};

/// The kernel's values of a connection at one moment.
struct ConnectionSnapshot<'a> {
    info: &'a TcpInfo,
    /// The account at the start of the test: the hello of a stream was sent before.
    start: &'a TcpInfo,
    memory: Option<StreamMemory>,
    /// SIOCOUTQ of a sender, SIOCINQ of a receiver.
    queue_bytes: Option<u64>,
}

impl ConnectionSnapshot<'_> {
    fn since_start(&self, pick: fn(&TcpInfo) -> Option<u64>) -> Option<u64> {
        us_to_ns(Some(pick(self.info)?.saturating_sub(pick(self.start).unwrap_or(0))))
    }
}

type Signal = (MetricId, fn(&ConnectionSnapshot<'_>) -> Option<u64>);

const SENDER: [Signal; 21] = [
    (MetricId::Unacked, |moment| moment.info.unacked_bytes()),
    (MetricId::Unsent, |moment| moment.info.notsent_bytes.map(u64::from)),
    (MetricId::LostSegments, |moment| moment.info.lost.map(u64::from)),
    (MetricId::CongestionState, |moment| moment.info.ca_state.map(u64::from)),
    (MetricId::Ssthresh, |moment| moment.info.ssthresh_bytes()),
    (MetricId::BusyTime, |moment| moment.since_start(|info| info.busy_time_us)),
    (MetricId::WindowLimited, |moment| moment.since_start(|info| info.rwnd_limited_us)),
    (MetricId::BufferLimited, |moment| moment.since_start(|info| info.sndbuf_limited_us)),
    (MetricId::ApplicationLimited, |moment| moment.info.delivery_rate_app_limited.map(u64::from)),
    (MetricId::ReorderingSegments, |moment| moment.info.reordering.map(u64::from)),
    (MetricId::ReorderingEvents, |moment| moment.info.reord_seen.map(u64::from)),
    (MetricId::DsackDuplicates, |moment| moment.info.dsack_dups.map(u64::from)),
    (MetricId::Delivered, |moment| moment.info.delivered.map(u64::from)),
    (MetricId::DeliveredCe, |moment| moment.info.delivered_ce.map(u64::from)),
    (MetricId::SegmentsSent, |moment| moment.info.data_segs_out.map(u64::from)),
    (MetricId::Timeouts, |moment| moment.info.total_rto.map(u64::from)),
    (MetricId::TimeoutTime, |moment| {
        moment.info.total_rto_time_ms.map(|ms| u64::from(ms) * 1_000_000)
    }),
    // All ones: no rate yet (sk_pacing_rate of Linux net/sock.h).
    (MetricId::PacingRate, |moment| {
        moment.info.pacing_rate_bytes_per_s.filter(|rate| *rate < u64::MAX / 8).map(|rate| rate * 8)
    }),
    (MetricId::SendQueue, |moment| moment.queue_bytes),
    (MetricId::SendMemory, |moment| moment.memory.map(|memory| memory.queued_bytes.into())),
    (MetricId::SendBuffer, |moment| moment.memory.map(|memory| memory.send_buffer_bytes.into())),
];

const RECEIVER: [Signal; 6] = [
    (MetricId::ReceiveQueue, |moment| moment.queue_bytes),
    (MetricId::ReceiveMemory, |moment| moment.memory.map(|memory| memory.received_bytes.into())),
    (MetricId::ReceiveBuffer, |moment| {
        moment.memory.map(|memory| memory.receive_buffer_bytes.into())
    }),
    (MetricId::OutOfOrder, |moment| moment.info.rcv_ooopack.map(u64::from)),
    (MetricId::SegmentsReceived, |moment| moment.info.data_segs_in.map(u64::from)),
    // 0 before the first estimate.
    (MetricId::ReceiverRtt, |moment| us_to_ns(moment.info.rcv_rtt_us.filter(|us| *us > 0))),
];

const fn signal_table(side: FlowSide) -> &'static [Signal] {
    match side {
        FlowSide::Sender => &SENDER,
        FlowSide::Receiver => &RECEIVER,
    }
}

/// The metrics of the values of an end, in their order.
pub(crate) fn metrics(side: FlowSide) -> impl Iterator<Item = MetricId> {
    signal_table(side).iter().map(|(metric, _)| *metric)
}

/// The values of a connection of which `info` has just been read, and `start` at the start.
pub(super) fn read_values(
    socket: BorrowedFd<'_>,
    info: &TcpInfo,
    start: &TcpInfo,
    side: FlowSide,
) -> Vec<Option<u64>> {
    let queue_bytes = match side {
        FlowSide::Sender => tcp::send_queue(socket),
        FlowSide::Receiver => tcp::receive_queue(socket),
    };
    let moment = ConnectionSnapshot { info, start, memory: tcp::memory(socket), queue_bytes };
    signal_table(side).iter().map(|(_, read)| read(&moment)).collect()
}

fn us_to_ns(us: Option<impl Into<u64>>) -> Option<u64> {
    us.map(|us| us.into() * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_specification() {
        let spec = include_str!("../../../../../spec/native.md");
        let section = spec.split("## Signals").nth(1).expect("its section");
        for (side, cell) in [(FlowSide::Sender, "| sender |"), (FlowSide::Receiver, "| receiver |")]
        {
            let row = section.lines().find_map(|line| line.strip_prefix(cell)).expect("its row");
            let keys: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
            let here: Vec<&str> = metrics(side).map(MetricId::key).collect();
            assert_eq!(here, keys);
        }
    }

    #[test]
    fn times_count_from_the_start_of_the_test() {
        // A hello over 40 ms kept the sender busy for 40 ms before; then 1 s of data.
        let at = |busy_us| TcpInfo { busy_time_us: Some(busy_us), ..TcpInfo::default() };
        let (info, start) = (&at(1_040_000), &at(40_000));
        let moment = ConnectionSnapshot { info, start, memory: None, queue_bytes: None };
        let (_, read) = SENDER.iter().find(|(id, _)| *id == MetricId::BusyTime).expect("there");
        assert_eq!(read(&moment), Some(1_000_000_000));
    }

    #[test]
    fn what_an_old_kernel_does_not_tell_is_absent_and_never_zero() {
        // 104 bytes: Linux 2.6. Unacked 4 at 24, MSS 1000 at 16, threshold never set at 76.
        let mut bytes = [0_u8; 104];
        for (at, value) in [(24, 4_u32), (16, 1000), (76, 0x7fff_ffff)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let info = TcpInfo::from_ne_bytes(&bytes);
        let start = &TcpInfo::default();
        let moment = ConnectionSnapshot { info: &info, start, memory: None, queue_bytes: None };
        let of = |metric| {
            let (_, read) = SENDER.iter().find(|(id, _)| *id == metric).expect("in the table");
            read(&moment)
        };
        assert_eq!(of(MetricId::Unacked), Some(4000));
        assert_eq!(of(MetricId::LostSegments), Some(0));
        for absent in [MetricId::Ssthresh, MetricId::BusyTime, MetricId::SendMemory] {
            assert_eq!(of(absent), None, "{absent}");
        }
    }
}
