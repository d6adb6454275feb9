//! The parser proper: bytes in, one step out, nothing kept but where it is.
//!
//! It holds no bytes. A caller with the whole capture in memory gives all that is left each time;
//! [`super::Stream`] does it with a buffer for a caller that reads.

use super::error::{CaptureError, Problem};
use super::interface::Interface;
use super::pcap::{self, PcapHeader};
use super::pcapng::{self, Section};
use super::step::{Place, Step};

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The format of libpcap.
    Pcap,
    /// The block format.
    Pcapng,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    Pcap(PcapHeader),
    Pcapng(Section),
}

/// Reads a capture from slices of it.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    place: Place,
    failed: Option<CaptureError>,
}

impl Parser {
    /// A parser at the start of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one step. `input` starts where the last step ended: behind the bytes that it used.
    /// # Errors
    /// What is wrong and where. It is final: every later call says the same.
    #[inline]
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let step = match &mut self.state {
            State::Pcap(header) => header.record(input, &mut self.place),
            State::Pcapng(section) => section.block(input, &mut self.place),
            State::Start => self.start(input),
        };
        if let Err(error) = step {
            self.failed = Some(error);
        }
        step
    }

    /// Says whether the capture may end here, where `rest` is all that follows the last step.
    /// # Errors
    /// [`Problem::Cut`] when `rest` is the beginning of a record, [`Problem::Empty`] when nothing
    /// came at all, and what [`Self::step`] said or would say.
    pub fn end(&mut self, rest: &[u8]) -> Result<(), CaptureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if rest.is_empty() {
            return match self.state {
                State::Start => Err(CaptureError::new(0, Problem::Empty)),
                State::Pcap(_) | State::Pcapng(_) => Ok(()),
            };
        }
        let offset = self.place.offset;
        match self.step(rest)? {
            Step::Needs { bytes } => {
                let problem = Problem::Cut { expected: bytes as u32, found: rest.len() as u32 };
                Err(CaptureError::new(offset, problem))
            }
            // Whole records are left: the caller ends too early, which is no fault of the capture.
            Step::Packet { .. } | Step::Passed { .. } => Ok(()),
        }
    }

    /// The format, once the first bytes were seen.
    pub const fn format(&self) -> Option<Format> {
        match self.state {
            State::Start => None,
            State::Pcap(_) => Some(Format::Pcap),
            State::Pcapng(_) => Some(Format::Pcapng),
        }
    }

    /// The interfaces of the present section that were described so far, in their order.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.state {
            State::Start => &[],
            State::Pcap(header) => std::slice::from_ref(header.interface()),
            State::Pcapng(section) => section.interfaces(),
        }
    }

    /// Bytes done with so far.
    pub const fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Packets given so far.
    pub const fn packets(&self) -> u64 {
        self.place.packets
    }

    fn start<'a>(&mut self, input: &'a [u8]) -> Result<Step<'a>, CaptureError> {
        let Some(magic) = input.first_chunk::<4>() else { return Ok(Step::Needs { bytes: 4 }) };
        if u32::from_le_bytes(*magic) == pcapng::SECTION {
            // The section header is a block like all others, so it is left for the next step.
            let mut section = Section::before_the_first();
            let step = section.block(input, &mut self.place)?;
            if let Step::Passed { .. } = step {
                self.state = State::Pcapng(section);
            }
            return Ok(step);
        }
        let Some(head) = input.first_chunk::<{ pcap::FILE_HEADER_BYTES }>() else {
            pcap::recognise(magic)?;
            return Ok(Step::Needs { bytes: pcap::FILE_HEADER_BYTES });
        };
        self.state = State::Pcap(PcapHeader::read(head)?);
        Ok(self.place.pass(head.len()))
    }
}
