//! What ptp4l says, asked on its local sockets: the one for everybody (linuxptp 4), or else the one
//! that is root's.

use std::time::Duration;

use linerate_proto::ptp4l::{ANSWER_BYTES_MAX, ANSWERS_MAX, Ptp4l, Ptp4lDataSet};
use linerate_sys::local_datagram::LocalDatagram;
use linerate_sys::{clock, poll};

/// ptp4l.8, `uds_ro_address` and `uds_address`.
const PATHS: [&str; 2] = ["/var/run/ptp4lro", "/var/run/ptp4l"];

/// A ptp4l that is asked now and then.
#[derive(Debug)]
pub(super) struct Ptp4lClient {
    socket: LocalDatagram,
    /// Sequence number of the first question of the last round; the others follow it.
    number: u16,
}

impl Ptp4lClient {
    /// The one that runs on this host; `None` without one, or where this user may not ask it.
    pub(super) fn connect_local() -> Option<Self> {
        Self::connect_first_path(&PATHS)
    }

    /// The first of these paths where one listens.
    pub(super) fn connect_first_path(paths: &[&str]) -> Option<Self> {
        let socket = paths.iter().find_map(|path| LocalDatagram::connect(path).ok())?;
        Some(Self { socket, number: u16::from_ne_bytes(clock::random_bytes()) })
    }

    /// Asks everything, and waits for the answers so long at most.
    pub(super) fn query_status(&mut self, wait: Duration) -> Option<Ptp4l> {
        self.request();
        let end = clock::monotonic() + wait;
        let mut said = Ptp4l::default();
        let mut heard = false;
        while !said.is_complete() {
            let now = clock::monotonic();
            if now >= end || !poll::readable(&self.socket, end.duration_since(now)).unwrap_or(false)
            {
                break;
            }
            heard |= self.receive_answers(&mut said);
        }
        heard.then_some(said)
    }

    /// Sends all questions of a round.
    pub(super) fn request(&mut self) {
        let count = Ptp4lDataSet::ALL.len() as u16;
        self.number = self.number.wrapping_add(count);
        for (number, question) in self.numbered() {
            // One that is gone, or does not read, shows by its silence.
            let _ = self.socket.send(&question.request_bytes(number));
        }
    }

    /// The answers since the last round; `None` where nothing came.
    pub(super) fn answers(&self) -> Option<Ptp4l> {
        let mut said = Ptp4l::default();
        self.receive_answers(&mut said).then_some(said)
    }

    fn receive_answers(&self, said: &mut Ptp4l) -> bool {
        let mut heard = false;
        let mut buffer = [0; ANSWER_BYTES_MAX];
        for _ in 0..ANSWERS_MAX {
            let Ok(Some(len)) = self.socket.receive(&mut buffer) else { break };
            heard |= self
                .numbered()
                .any(|(number, question)| said.add_answer(&buffer[..len], question, number));
        }
        heard
    }

    fn numbered(&self) -> impl Iterator<Item = (u16, Ptp4lDataSet)> {
        let number = self.number;
        (0..)
            .zip(Ptp4lDataSet::ALL)
            .map(move |(place, question)| (number.wrapping_add(place), question))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// Answers each question as ptp4l did (testdata/ptp4l), but the last `silent` ones.
    fn program(door: &UnixDatagram, silent: usize) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptp4l");
        let names = ["current", "parent", "time", "ports"];
        for (place, name) in names.into_iter().enumerate() {
            let mut question = [0; 100];
            let (len, from) = door.recv_from(&mut question).expect("a question");
            assert_eq!(len, 54);
            let mut answer =
                std::fs::read(folder.join(format!("slave-{name}.bin"))).expect("there");
            assert_eq!(question[52..54], answer[52..54], "asked in this order");
            answer[30..32].copy_from_slice(&question[30..32]);
            if place + silent < names.len() {
                door.send_to_addr(&answer, &from).expect("it waits");
            }
        }
    }

    #[test]
    fn a_ptp4l_at_one_of_the_paths_is_asked_and_its_answers_are_put_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ptp4l");
        let path = path.to_str().expect("text");
        assert!(Ptp4lClient::connect_first_path(&["/nobody/here", path]).is_none());
        let door = UnixDatagram::bind(path).expect("free");
        let mut asked =
            Ptp4lClient::connect_first_path(&["/nobody/here", path]).expect("it listens");
        let said = std::thread::scope(|scope| {
            scope.spawn(|| program(&door, 0));
            asked.query_status(Duration::from_secs(20))
        });
        assert_eq!(said.and_then(|said| said.error_ns()), Some(3_608), "{said:?}");
        asked.request();
        program(&door, 1);
        let said = asked.answers().expect("three of four");
        assert!(!said.is_complete() && said.error_ns().is_none(), "{said:?}");
        asked.request();
        assert_eq!(asked.answers(), None, "none of this round");
    }
}
