//! One generator or another, behind one face.

use linerate_core::device::{FrameLoad, FrameTemplate, SendCounts};
use linerate_core::record::{Failure, GeneratorKind};
use linerate_sys::frame_sender::{FrameSender, SenderOptions};
use linerate_sys::stop::Stop;
use linerate_sys::xdp;
use linerate_sys::xdp_socket::{XdpOptions, XdpSender};

use crate::failure::system;

/// The generator of a port's frames: XDP's live frames, AF_XDP, or a packet socket.
pub(super) enum PortGenerator {
    Live(xdp::Generator),
    Xdp(XdpSender),
    Packet(FrameSender),
}

/// The port that is to send, on the thread inside whose namespace it is.
pub(super) struct Outgoing<'a> {
    pub ifindex: u32,
    pub stream: u8,
    pub trial: u32,
    pub templates: &'a [FrameTemplate],
    pub cpu: Option<u32>,
}

impl PortGenerator {
    /// Opens a generator of this kind.
    pub(super) fn open(kind: GeneratorKind, port: &Outgoing<'_>) -> Result<Self, Failure> {
        let options = SenderOptions {
            ifindex: port.ifindex,
            trial: port.trial,
            stream: port.stream,
            templates: port.templates.to_vec(),
            cpu: port.cpu,
        };
        match kind {
            GeneratorKind::Live => {
                let options = xdp::GeneratorOptions {
                    cpu: port.cpu,
                    ..xdp::GeneratorOptions::new(
                        port.ifindex,
                        port.stream,
                        port.trial,
                        port.templates.to_vec(),
                    )
                };
                xdp::Generator::open(options).map(Self::Live).map_err(|error| system(&error))
            }
            GeneratorKind::Xdp => XdpSender::open(&options, XdpOptions::default())
                .map(Self::Xdp)
                .map_err(|error| system(&error)),
            GeneratorKind::Packet => {
                FrameSender::open(&options).map(Self::Packet).map_err(|error| system(&error))
            }
        }
    }

    /// Begins another trial: numbers from 0 again.
    pub(super) fn begin_trial(&mut self, trial: u32) {
        match self {
            Self::Live(it) => it.begin_trial(trial),
            Self::Xdp(it) => it.begin_trial(trial),
            Self::Packet(it) => it.begin_trial(trial),
        }
    }

    /// Sends a load on the calling thread, which is inside the port's namespace.
    pub(super) fn run(&mut self, load: &FrameLoad, stop: &Stop) -> Result<SendCounts, Failure> {
        let sent = match self {
            Self::Live(it) => it.run(load, stop),
            Self::Xdp(it) => it.run(load, stop),
            Self::Packet(it) => it.run(load, stop),
        };
        sent.map_err(|error| system(&error))
    }
}
