//! Parser of a capture without a buffer: each call parses one record from the caller's bytes.
//!
//! A caller with the whole capture in memory passes the rest of it each time; [`super::Stream`]
//! adds a buffer for a caller that reads a file.

use super::error::{CaptureError, CaptureProblem};
use super::interface::CaptureInterface;
use super::pcap::{self, PcapHeader};
use super::pcapng::{self, Section};
use super::step::{CaptureStep, Position};

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format of libpcap.
    Pcap,
    /// The block format, pcapng.
    Pcapng,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    Pcap(PcapHeader),
    Pcapng(Section),
}

/// Parser of a capture, from slices of it.
#[derive(Debug, Default)]
pub struct CaptureParser {
    state: State,
    place: Position,
    failed: Option<CaptureError>,
}

impl CaptureParser {
    /// A parser at the start of a capture.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses one record. `input` starts after the bytes that the previous step used.
    /// # Errors
    /// The error and its offset; every later call returns the same error.
    #[inline]
    pub fn parse_record<'a>(&mut self, input: &'a [u8]) -> Result<CaptureStep<'a>, CaptureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let step = match &mut self.state {
            State::Pcap(header) => header.record(input, &mut self.place),
            State::Pcapng(section) => section.parse_block(input, &mut self.place),
            State::Start => self.parse_file_header(input),
        };
        if let Err(error) = step {
            self.failed = Some(error);
        }
        step
    }

    /// Checks that the capture may end here; `rest` is the bytes after the last step.
    /// # Errors
    /// [`CaptureProblem::Cut`] when `rest` is the start of a record, [`CaptureProblem::Empty`] for
    /// an empty capture, and the errors of [`Self::parse_record`].
    pub fn check_end(&mut self, rest: &[u8]) -> Result<(), CaptureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if rest.is_empty() {
            return match self.state {
                State::Start => Err(CaptureError::new(0, CaptureProblem::Empty)),
                State::Pcap(_) | State::Pcapng(_) => Ok(()),
            };
        }
        let offset = self.place.offset;
        match self.parse_record(rest)? {
            CaptureStep::Needs { bytes } => {
                let problem =
                    CaptureProblem::Cut { expected: bytes as u32, found: rest.len() as u32 };
                Err(CaptureError::new(offset, problem))
            }
            // Complete records are left: the caller ends early, which is no error of the capture.
            CaptureStep::Packet { .. } | CaptureStep::Passed { .. } => Ok(()),
        }
    }

    /// Format of the capture, once its first bytes were parsed.
    pub const fn format(&self) -> Option<Format> {
        match self.state {
            State::Start => None,
            State::Pcap(_) => Some(Format::Pcap),
            State::Pcapng(_) => Some(Format::Pcapng),
        }
    }

    /// Interfaces of the current section described so far, in order.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        match &self.state {
            State::Start => &[],
            State::Pcap(header) => std::slice::from_ref(header.interface()),
            State::Pcapng(section) => section.interfaces(),
        }
    }

    /// Bytes parsed so far.
    pub const fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Packets returned so far.
    pub const fn packets(&self) -> u64 {
        self.place.packets
    }

    fn parse_file_header<'a>(&mut self, input: &'a [u8]) -> Result<CaptureStep<'a>, CaptureError> {
        let Some(magic) = input.first_chunk::<4>() else {
            return Ok(CaptureStep::Needs { bytes: 4 });
        };
        if u32::from_le_bytes(*magic) == pcapng::SECTION {
            // The section header is parsed as a block like all others.
            let mut section = Section::before_the_first();
            let step = section.parse_block(input, &mut self.place)?;
            if let CaptureStep::Passed { .. } = step {
                self.state = State::Pcapng(section);
            }
            return Ok(step);
        }
        let Some(head) = input.first_chunk::<{ pcap::FILE_HEADER_BYTES }>() else {
            pcap::check_magic(magic)?;
            return Ok(CaptureStep::Needs { bytes: pcap::FILE_HEADER_BYTES });
        };
        self.state = State::Pcap(PcapHeader::read(head)?);
        Ok(self.place.advance_bytes(head.len()))
    }
}
