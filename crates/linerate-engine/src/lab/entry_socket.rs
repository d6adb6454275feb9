//! How another process enters a running laboratory: a local socket that passes namespaces.
//!
//! The socket's name, `@linerate/lab/PID/NAME`, is abstract: it vanishes with the process. A client
//! sends the name of a host and a line end, and gets one line back: `ok`, with the descriptors of
//! the host's network namespace and of the laboratory's user namespace, or `no REASON`. The
//! connection stays open while the laboratory lives, so that its end can be seen. Only processes
//! of the same user are answered.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_sys::fd_passing;
use linerate_sys::netns::Netns;
use linerate_sys::userns::Userns;

use super::{Lab, system};

const PREFIX: &str = "linerate/lab/";
/// Longest request: a name of 32 bytes and a line end, with room.
const REQUEST_BYTES_MAX: u64 = 64;
const ANSWER_BYTES_MAX: usize = 4096;
/// A client that says nothing holds up others for this long.
const PATIENCE: Duration = Duration::from_secs(1);
/// Connections held open at once; more are turned away.
const GUESTS_MAX: usize = 256;

/// The way into a laboratory, open until the process ends.
#[derive(Debug)]
pub struct EntrySocket {
    socket_name: String,
}

impl EntrySocket {
    /// Opens the entry_socket; a thread answers until the process ends.
    /// # Errors
    /// When the socket cannot be bound or no thread can be started.
    pub fn open(lab: &Lab) -> Result<Self, Failure> {
        let socket_name = format!("{PREFIX}{}/{}", std::process::id(), printable(lab.name()));
        let failed =
            |reason: &dyn fmt::Display| system("open the entry_socket of", lab.name(), reason);
        let listener = fd_passing::listen(&socket_name).map_err(|error| failed(&error))?;
        let inside = Inside {
            hosts: (lab.layout.nodes.iter().zip(&lab.nodes))
                .map(|(plan, node)| (plan.name.clone(), Arc::clone(&node.netns)))
                .collect(),
            userns: Userns::current().map_err(|error| failed(&error))?,
        };
        let thread = thread::Builder::new().name("entry_socket".to_owned());
        thread.spawn(move || inside.answer(&listener)).map_err(|error| failed(&error))?;
        Ok(Self { socket_name })
    }

    /// The abstract name of the socket, without the `@`.
    pub fn socket_name(&self) -> &str {
        &self.socket_name
    }
}

/// The hosts and the user namespace that the entry socket gives access to.
struct Inside {
    hosts: Vec<(String, Arc<Netns>)>,
    userns: Userns,
}

impl Inside {
    fn answer(&self, listener: &UnixListener) {
        let mut guests: Vec<UnixStream> = Vec::new();
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            guests.retain(|guest| !fd_passing::is_closed(guest));
            if guests.len() == GUESTS_MAX {
                let _ = fd_passing::send_with_fds(&stream, b"no it has too many guests\n", &[]);
            } else if self.answer_one(&stream).is_some() {
                guests.push(stream);
            }
        }
    }

    /// Answers one client; some when it was let in.
    fn answer_one(&self, stream: &UnixStream) -> Option<()> {
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        if !fd_passing::peer_is_same_user(stream) {
            fd_passing::send_with_fds(stream, b"no it belongs to another user\n", &[]).ok()?;
            return None;
        }
        let host = read_line(stream)?;
        let Some((_, netns)) = self.hosts.iter().find(|(name, _)| *name == host) else {
            let names: Vec<&str> = self.hosts.iter().map(|(name, _)| name.as_str()).collect();
            let text = format!("no it has {}\n", names.join(", "));
            fd_passing::send_with_fds(stream, text.as_bytes(), &[]).ok()?;
            return None;
        };
        let fds = [netns.as_fd(), self.userns.as_fd()];
        fd_passing::send_with_fds(stream, b"ok\n", &fds).ok()
    }
}

fn read_line(stream: &UnixStream) -> Option<String> {
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut line).ok()?;
    line.strip_suffix('\n').map(str::to_owned)
}

/// The name with every character that has a meaning in the table of sockets replaced.
fn printable(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.chars().take(32).map(|c| if keep(c) { c } else { '_' }).collect()
}

/// A laboratory of this or another user that runs on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The process that holds it.
    pub pid: u32,
    /// The name of the laboratory.
    pub name: String,
}

/// The laboratories whose doors are open in the caller's network namespace, by process.
/// # Errors
/// When /proc is not there.
pub fn running() -> Result<Vec<Running>, Failure> {
    let names = fd_passing::abstract_names(PREFIX)
        .map_err(|error| system("look for", "laboratories", error))?;
    let parse = |name: &String| {
        let (pid, name) = name.strip_prefix(PREFIX)?.split_once('/')?;
        Some(Running { pid: pid.parse().ok()?, name: name.to_owned() })
    };
    let mut found: Vec<Running> = names.iter().filter_map(parse).collect();
    found.sort_by_key(|running| running.pid);
    Ok(found)
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// A host of a laboratory that another process holds.
#[derive(Debug)]
pub struct Entry {
    stream: UnixStream,
    netns: Netns,
    userns: Userns,
}

impl Entry {
    /// Asks for a host of a running laboratory.
    /// # Errors
    /// When it has ended, has no such host, or belongs to another user.
    pub fn request_host(lab: &Running, host: &str) -> Result<Self, Failure> {
        let failed = |fault, reason: &dyn fmt::Display| {
            Failure::new(fault, "enter", format!("{host} of {lab}"), reason)
        };
        let gone = |error: linerate_sys::Error| failed(Fault::Usage, &error);
        let stream =
            fd_passing::connect(&format!("{PREFIX}{}/{}", lab.pid, lab.name)).map_err(gone)?;
        fd_passing::send_with_fds(&stream, format!("{host}\n").as_bytes(), &[]).map_err(gone)?;
        let mut answer = [0; ANSWER_BYTES_MAX];
        let (count, fds) = fd_passing::receive(&stream, &mut answer).map_err(gone)?;
        let text = String::from_utf8_lossy(&answer[..count]);
        let text = text.trim_end();
        let mut fds = fds.into_iter();
        match (text, fds.next(), fds.next()) {
            ("ok", Some(netns), Some(userns)) => {
                Ok(Self { stream, netns: Netns::from_fd(netns), userns: Userns::from_fd(userns) })
            }
            _ => {
                let reason = text.strip_prefix("no ").unwrap_or("it gave no way in");
                Err(failed(Fault::Usage, &reason))
            }
        }
    }

    /// Moves the calling process inside. It must have no second thread.
    /// # Errors
    /// Without the privilege of the user that made the laboratory.
    pub fn enter_namespaces(&self) -> Result<(), Failure> {
        let entered = self.userns.enter().and_then(|()| self.netns.enter());
        entered.map_err(|error| system("enter", "the laboratory", error))
    }

    /// A descriptor whose other end is closed when the laboratory ends.
    pub fn lifetime_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
