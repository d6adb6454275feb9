//! Between a plan of this program and the parameters of iperf3.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Failure, Fault, Finish, ServerPlan, TcpDirections, TcpPlan, TcpTest, Via,
};
use linerate_core::units::BitRate;
use linerate_proto::iperf3::{CLIENT_NAME, Params, ParamsError, Protocol};

/// Bytes of a write where the client names none (DEFAULT_TCP_BLKSIZE).
const BLOCK_BYTES: u32 = 128 << 10;

/// Nanoseconds of a second: iperf3 counts times in whole ones.
const SECOND_NS: u64 = 1_000_000_000;

/// The parameters of a test.
/// # Errors
/// What iperf3 does not have.
pub(super) fn params(test: &TcpTest) -> Result<Params, Failure> {
    let cannot = |flag: &str, reason: &str| {
        Err(Failure::new(Fault::Usage, "ask iperf3 for", flag, reason)
            .advise("omit it, or start linerate serve there"))
    };
    if test.background.is_some() {
        return cannot("--background", "it has no flow in the background");
    }
    if test.read_bytes.is_some() && test.directions != TcpDirections::Down {
        return cannot("--read-size", "the size of its reads is its own");
    }
    if test.read_pace.is_some() && test.directions != TcpDirections::Down {
        return cannot("--read-pace", "the pace of its reads is its own");
    }
    if !test.omit_ns.is_multiple_of(SECOND_NS) {
        return cannot("-O", "it omits whole seconds");
    }
    let params = Params {
        protocol: Protocol::Tcp,
        omit_s: test.omit_ns / SECOND_NS,
        // The client's own clock ends the test; the server needs to know when to give up.
        time_s: match test.finish {
            Finish::TimeNs(ns) => ns.div_ceil(SECOND_NS),
            Finish::Bytes(_) | Finish::Buffers(_) => 0,
        },
        bytes: if let Finish::Bytes(bytes) = test.finish { bytes } else { 0 },
        blocks: if let Finish::Buffers(count) = test.finish { count } else { 0 },
        parallel: u64::from(test.streams),
        block_bytes: Some(u64::from(test.buffer_bytes)),
        mss_bytes: test.mss_bytes.map(u64::from),
        nodelay: test.nodelay,
        reverse: test.directions == TcpDirections::Down,
        bidirectional: test.directions == TcpDirections::Both,
        window_bytes: test.window_bytes,
        rate_bps: test.pace.map(BitRate::bits_per_sec),
        tos: test.dscp.map(|dscp| u64::from(dscp) << 2),
        congestion: test.congestion_control.clone(),
        zerocopy: test.zero_copy,
        client_version: Some([CLIENT_NAME, env!("CARGO_PKG_VERSION")].concat()),
        ..Params::default()
    };
    params.check_bounds().map_err(|error| out_of_bounds(&error))?;
    Ok(params)
}

/// Blocks that leave at once; checked parameters have 1000 at most.
pub(super) fn burst_of(params: &Params) -> Option<u32> {
    params.burst.and_then(|burst| u32::try_from(burst).ok())
}

/// A value that iperf3 does not take.
pub(super) fn out_of_bounds(error: &ParamsError) -> Failure {
    Failure::new(Fault::Usage, "ask iperf3 for", error.key, error.to_string())
        .advise("these are the limits of iperf3")
}

/// The test that a client's parameters ask of this end. The client ends it; bytes and blocks bound
/// what this end sends.
pub(super) fn request_of(params: &Params, interval: Duration) -> TcpTest {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    TcpTest {
        directions: match (params.reverse, params.bidirectional) {
            (true, _) => TcpDirections::Down,
            (_, true) => TcpDirections::Both,
            _ => TcpDirections::Up,
        },
        streams: u16::try_from(params.parallel).unwrap_or(u16::MAX),
        finish: match (params.bytes, params.blocks) {
            (0, 0) => Finish::Bytes(u64::MAX),
            (0, blocks) => Finish::Buffers(blocks),
            (bytes, _) => Finish::Bytes(bytes),
        },
        omit_ns: params.omit_s.saturating_mul(SECOND_NS),
        interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
        buffer_bytes: params.block_bytes.map_or(BLOCK_BYTES, narrow),
        window_bytes: params.window_bytes,
        mss_bytes: params.mss_bytes.map(narrow),
        nodelay: params.nodelay,
        congestion_control: params.congestion.clone(),
        pace: params.rate_bps.map(BitRate::from_bits_per_sec),
        dscp: params.tos.and_then(|tos| u8::try_from(tos >> 2).ok()),
        zero_copy: params.zerocopy,
        ..TcpTest::default()
    }
}

/// The plan behind a client's parameters, for the record of this end.
pub(super) fn plan_of(params: &Params, request: &TcpTest, peer: SocketAddr) -> TcpPlan {
    TcpPlan {
        server: ServerPlan::new(Some(Via::Iperf3), peer.ip().to_string(), peer.port()),
        test: TcpTest { finish: finish_of(params, request.finish), ..request.clone() },
        ..TcpPlan::default()
    }
}

/// The limit that ends a client's test: its time, where it has one.
pub(super) fn finish_of(params: &Params, amount: Finish) -> Finish {
    match params.time_s {
        0 => amount,
        time_s => Finish::TimeNs(time_s.saturating_mul(SECOND_NS)),
    }
}
