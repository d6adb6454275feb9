//! The listening side of a personality: connections one after the other, each on a thread of its
//! own, until the user stops it or the first has been served.

use std::any::Any;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use linerate_engine::flow::admission::{Admission, Demand, Permit};
use linerate_proto::native::Refuse;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, TcpOptions};

/// Interval at which the stop flag is read.
const LOOK: Duration = Duration::from_millis(100);
/// Most connections at once.
const CONNECTIONS_MAX: usize = 1024;

/// The gate of these programs: every client may measure.
pub(super) struct AdmitEveryone;

impl Admission for AdmitEveryone {
    fn admit_test(&self, _demand: &Demand, _peer: SocketAddr) -> Result<Permit, Refuse> {
        let nothing: Box<dyn Any + Send> = Box::new(());
        Ok(Permit(nothing))
    }

    fn duration_max(&self) -> Duration {
        Duration::from_secs(86_400)
    }
}

/// A flag that Ctrl-C sets.
pub(super) fn until_interrupted() -> Result<Stop, Failure> {
    Stop::on_signals().map_err(|error| linerate_engine::failure::system(&error))
}

/// Listens on a port of all addresses, or of one.
pub(super) fn listen(
    bind: Option<IpAddr>,
    port: u16,
    window_bytes: Option<u64>,
) -> Result<TcpListener, Failure> {
    let options = TcpOptions { window_bytes, ..TcpOptions::default() };
    let at = |address| tcp::listen(SocketAddr::new(address, port), &options);
    let listener = match bind {
        Some(address) => at(address),
        // A host without IPv6 has IPv4 alone.
        None => at(IpAddr::V6(Ipv6Addr::UNSPECIFIED)).or_else(|_| at(tcp::any_address(false))),
    };
    listener.map_err(|error| {
        Failure::new(Fault::System, error.call, &error.object, words_of(&error.source))
            .advise("choose another port with -p")
    })
}

/// Serves connections until `stop`, each on a thread; with `most` so many, one after the other, to
/// their end.
pub(super) fn serve_connections(
    listener: &TcpListener,
    stop: &Stop,
    most: Option<u32>,
    handle: &(dyn Fn(TcpStream, SocketAddr) + Sync),
) -> Result<(), Failure> {
    let fail = |error: &std::io::Error| Failure::new(Fault::System, "accept", "", words_of(error));
    let open = std::sync::atomic::AtomicUsize::new(0);
    let open = &open;
    let mut left = most.unwrap_or(u32::MAX);
    std::thread::scope(|scope| {
        while !stop.is_requested() && left > 0 {
            if !readable(listener, LOOK).map_err(|error| fail(&error))? {
                continue;
            }
            let (stream, peer) = listener.accept().map_err(|error| fail(&error))?;
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            use std::sync::atomic::Ordering::AcqRel;
            if open.fetch_add(1, AcqRel) >= CONNECTIONS_MAX {
                open.fetch_sub(1, AcqRel);
                continue;
            }
            left -= u32::from(most.is_some());
            scope.spawn(move || {
                handle(stream, peer);
                open.fetch_sub(1, AcqRel);
            });
        }
        Ok(())
    })
}

/// Runs `serve`; sets `stop` once `span` is over, or once `over` is true.
pub(super) fn within<T>(
    span: Option<Duration>,
    stop: &Stop,
    over: &(dyn Fn() -> bool + Sync),
    serve: impl FnOnce() -> T,
) -> T {
    let end = span.map(|span| monotonic() + span);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                if over() || end.is_some_and(|end| monotonic() >= end) {
                    stop.request_stop();
                    return;
                }
                sleep(LOOK.min(end.map_or(LOOK, |end| end.duration_since(monotonic()))));
            }
        });
        let result = serve();
        done.store(true, Ordering::Release);
        result
    })
}
