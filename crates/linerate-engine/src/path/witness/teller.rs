//! The emulators' side: a socket in each namespace, a thread for each measurement under way.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_sys::netns::Netns;
use linerate_sys::{fd_passing, netlink};

use super::watch::{OnWay, Watched};
use super::{PATIENCE, PREFIX};
use crate::netns::run_inside;

/// Measurements that are watched at once; more go without.
const GUESTS_MAX: usize = 64;
/// Time between two looks at the queues: ten of them in 100 ms of a slow start.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longest question: an IPv6 address and a line end, with room.
const QUESTION_BYTES_MAX: u64 = 64;

/// Numbers the sockets of a process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The interface by which the calling thread's namespace reaches an address.
pub fn route_device(target: IpAddr) -> Option<String> {
    netlink::route_to(target).ok().map(|route| route.ifname)
}

/// The paths on the way from a namespace to an address.
pub type Ways = dyn Fn(IpAddr) -> Vec<OnWay> + Send + Sync;

/// A namespace from which measurements are made.
pub struct Site {
    /// The namespace; none is that of the calling thread.
    pub netns: Option<Arc<Netns>>,
    /// Name of the namespace in messages.
    pub name: String,
    /// The paths from here.
    pub ways: Arc<Ways>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Answers measurements until it is dropped.
#[derive(Debug)]
pub struct Teller {
    stop: Arc<AtomicBool>,
    doors: Vec<(Site, String, JoinHandle<()>)>,
}

impl Teller {
    /// Opens a socket in each namespace.
    /// # Errors
    /// When a socket cannot be bound or no thread can be started.
    pub fn open_sockets(sites: Vec<Site>) -> Result<Self, Failure> {
        let mut teller = Self { stop: Arc::default(), doors: Vec::new() };
        for site in sites {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let socket_name = format!("{PREFIX}{}/{number}", std::process::id());
            let failed = |reason: &dyn fmt::Display| {
                Failure::new(Fault::System, "tell of the paths of", &site.name, reason)
            };
            let listener = inside(&site, || fd_passing::listen(&socket_name))?;
            let listener = listener.map_err(|error| failed(&error))?;
            let (stop, ways) = (Arc::clone(&teller.stop), Arc::clone(&site.ways));
            let thread = thread::Builder::new().name("teller".to_owned());
            let thread = thread.spawn(move || answer_all(&listener, &ways, &stop));
            let thread = thread.map_err(|error| failed(&error))?;
            teller.doors.push((site, socket_name, thread));
        }
        Ok(teller)
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for (site, socket_name, thread) in self.doors.drain(..) {
            // Wakes the thread, which looks at the flag then.
            let knocked = inside(&site, || fd_passing::connect(&socket_name));
            if matches!(knocked, Ok(Ok(_))) {
                // A thread that panicked has ended too.
                let _ = thread.join();
            }
        }
    }
}

fn inside<T: Send>(site: &Site, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    match &site.netns {
        Some(netns) => run_inside(netns, &site.name, work),
        None => Ok(work()),
    }
}

fn answer_all(listener: &UnixListener, ways: &Arc<Ways>, stop: &Arc<AtomicBool>) {
    let guests = Arc::new(AtomicUsize::new(0));
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let Ok(stream) = stream else { continue };
        if guests.load(Ordering::Relaxed) >= GUESTS_MAX || !fd_passing::peer_is_same_user(&stream) {
            continue;
        }
        guests.fetch_add(1, Ordering::Relaxed);
        let (ways, stop, guests) = (Arc::clone(ways), Arc::clone(stop), Arc::clone(&guests));
        let thread = thread::Builder::new().name("watch".to_owned());
        threads.extend(thread.spawn(move || {
            // A guest that went away wants no answer.
            let _ = watch_for_client(&stream, &*ways, &stop);
            guests.fetch_sub(1, Ordering::Relaxed);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// From the question to the answer; none when the guest left.
fn watch_for_client(stream: &UnixStream, ways: &Ways, stop: &AtomicBool) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.by_ref().take(QUESTION_BYTES_MAX).read_line(&mut line).ok()?;
    let target: IpAddr = line.trim_end().parse().ok()?;
    let on_way = ways(target);
    let begin = |on_way: OnWay| Watched::begin_watching(on_way, LOOK_EVERY);
    let mut watched: Vec<Watched> = on_way.into_iter().map(begin).collect();
    (&*stream).write_all(format!("ok {}\n", watched.len()).as_bytes()).ok()?;
    stream.set_read_timeout(Some(LOOK_EVERY)).ok()?;
    line.clear();
    loop {
        match reader.by_ref().take(QUESTION_BYTES_MAX).read_line(&mut line) {
            Ok(0) => return None,
            Ok(_) => break,
            Err(error) if is_waiting(error.kind()) && !stop.load(Ordering::Acquire) => {
                watched.iter_mut().for_each(Watched::sample_queues);
            }
            Err(_) => return None,
        }
    }
    let paths: Vec<_> = watched.into_iter().map(Watched::finish_watching).collect();
    let mut text = linerate_core::tree::to_json(&paths).ok()?;
    text.push('\n');
    (&*stream).write_all(text.as_bytes()).ok()
}

fn is_waiting(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
