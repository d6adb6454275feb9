//! The port's hosts as the device sees them: questions for their hardware addresses are answered
//! while trials run, and tables of bridges and routers are kept filled (RFC 2544 §23, §25).

use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{BenchFrames, Failure, Fault};
use linerate_core::units::FrameLen;
use linerate_proto::test_frame::{
    Mac, Neighbours, Stations, TestFrame, TestFrameContent, VirtualHostRange,
};
use linerate_sys::clock::monotonic;
use linerate_sys::raw_port::RawPort;
use linerate_sys::stop::Stop;

use super::frames::Station;

/// How long a keeper waits for a frame before it looks at its clock.
const LOOK: Duration = Duration::from_millis(50);

/// Answers on one port until it is dropped.
pub(super) struct NeighbourResponder {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl NeighbourResponder {
    /// Begins to answer for a station; `raw` is the port.
    pub(super) fn start_responding(
        raw: RawPort,
        neighbours: Neighbours,
        name: &str,
    ) -> Result<Self, Failure> {
        let stop = Stop::new();
        let asked = stop.clone();
        let work = move || answer_until_stopped(&raw, neighbours, &asked);
        let thread = std::thread::Builder::new().name("neighbours".to_owned()).spawn(work);
        let thread = thread
            .map_err(|error| Failure::new(Fault::System, "answer neighbours on", name, error))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for NeighbourResponder {
    fn drop(&mut self) {
        self.stop.request_stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Errors of single frames are passed over: a port whose link is down is found out by its trials.
fn answer_until_stopped(raw: &RawPort, mut neighbours: Neighbours, stop: &Stop) {
    while !stop.is_requested() {
        if let Ok(Some(frame)) = raw.receive(LOOK)
            && let Some(answer) = neighbours.answer(&frame)
        {
            let _ = raw.send_frame(&answer);
        }
        for frame in neighbours.keep_alives(monotonic()) {
            let _ = raw.send_frame(&frame);
        }
    }
}

/// The stations that a port stands for: its own, and one for each flow where hosts are many.
pub(super) fn stations(station: &Station, frames: &BenchFrames) -> Stations {
    let mut stations = Stations::default();
    if let Some(address) = station.address {
        let count = if frames.many_hosts { frames.flows.max(1) } else { 1 };
        stations.hosts =
            vec![VirtualHostRange { count, ..VirtualHostRange::single_host(address, station.mac) }];
    }
    stations
}

/// Frames by which bridges and neighbours learn where a station is.
pub(super) fn learning(station: &Station, neighbours: &Neighbours) -> Vec<Vec<u8>> {
    let own =
        TestFrame::new(FrameLen::MIN, station.mac, Mac::BROADCAST, TestFrameContent::Ethernet);
    own.learning_frames().chain(neighbours.announcements()).collect()
}
