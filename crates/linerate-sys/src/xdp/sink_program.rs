//! Where the figures of the counter are, which is `bpf/sink.c`.
//!
//! ```text
//! control  0 trial   1 own streams (bits)   2 shortest   3 longest   4 upper half of the trial
//!          8 ... 23  slot of stream 0 ... 15
//!         24 ... 39  first byte in the bitmap of slot 0 ... 15
//!         40 ... 55  frames of the slot that the bitmap remembers
//!         56 ... 71  former trials
//!         72 ...     slot 0: next number, last arrival; slot 1: ...
//! counts   a row for each processor: seven words for foreign frames, then for each slot
//!          0 frames  1 bytes  2 copies  3 reordered  4 wrong length  5 loss runs  6 longest
//!          7 first  8 last  9 not remembered  10 latency  10 + WORDS gap
//! ```
//! Each processor counts in a row of its own, so that no count is lost; the order of numbers and
//! the last arrival are one for all, so that they are exact when one NAPI serves the interface.

use super::spread;
use crate::Result;
use crate::bpf::{Code, Constants, MappedArray, Place, Program, ProgramOptions};

/// Streams that a counter tells apart.
pub(super) const STREAMS: usize = 16;

pub(super) const TRIAL: usize = 0;
pub(super) const OWN: usize = 1;
pub(super) const SHORTEST: usize = 2;
pub(super) const LONGEST: usize = 3;
pub(super) const UPPER: usize = 4;
pub(super) const SLOT_OF: usize = 8;
pub(super) const BITS_AT: usize = SLOT_OF + STREAMS;
pub(super) const REMEMBERED: usize = BITS_AT + STREAMS;
pub(super) const FORMER: usize = REMEMBERED + STREAMS;
pub(super) const FORMER_TRIALS: usize = 16;
pub(super) const ORDER: usize = FORMER + FORMER_TRIALS;
pub(super) const NEXT: usize = 0;
pub(super) const ARRIVED: usize = 1;
const ORDER_WORDS: usize = 2;
pub(super) const CONTROL_WORDS: usize = ORDER + STREAMS * ORDER_WORDS;

pub(super) const FRAMES: usize = 0;
pub(super) const BYTES: usize = 1;
pub(super) const COPIES: usize = 2;
pub(super) const REORDERED: usize = 3;
pub(super) const WRONG_LENGTH: usize = 4;
pub(super) const LOSS_RUNS: usize = 5;
pub(super) const LONGEST_RUN: usize = 6;
pub(super) const FIRST: usize = 7;
pub(super) const LAST: usize = 8;
pub(super) const NOT_REMEMBERED: usize = 9;
pub(super) const LATENCY: usize = 10;
pub(super) const GAP: usize = LATENCY + spread::WORDS;
pub(super) const SLOT_WORDS: usize = GAP + spread::WORDS;

pub(super) const ARP: usize = 0;
pub(super) const NEIGHBOUR: usize = 1;
pub(super) const LINK_CONTROL: usize = 2;
pub(super) const OTHER_TRIAL: usize = 3;
pub(super) const LOOP: usize = 4;
pub(super) const OTHER: usize = 5;
pub(super) const PAUSE: usize = 6;
pub(super) const FOREIGN_WORDS: usize = 7;

/// The memory that program and process share.
#[derive(Debug)]
pub(super) struct SinkMaps {
    pub(super) control: MappedArray,
    pub(super) counts: MappedArray,
    pub(super) bitmap: MappedArray,
    pub(super) log: MappedArray,
    pub(super) cpus: usize,
    pub(super) slots: usize,
    pub(super) bitmap_words: usize,
    /// Arrivals of each slot that are kept.
    pub(super) log_frames: usize,
    /// Frames may come in several buffers.
    pub(super) several_buffers: bool,
}

impl SinkMaps {
    pub(super) fn new(
        cpus: usize,
        slots: usize,
        bitmap_words: usize,
        log_frames: usize,
        several_buffers: bool,
    ) -> Result<Self> {
        let row = FOREIGN_WORDS + slots * SLOT_WORDS;
        Ok(Self {
            control: MappedArray::new("sink_control", CONTROL_WORDS)?,
            counts: MappedArray::new("sink_counts", cpus * row)?,
            bitmap: MappedArray::new("sink_bitmap", bitmap_words)?,
            log: MappedArray::new("sink_log", log_frames * slots)?,
            cpus,
            slots,
            bitmap_words: bitmap_words.max(1),
            log_frames,
            several_buffers,
        })
    }

    /// Words of one processor.
    pub(super) const fn row(&self) -> usize {
        FOREIGN_WORDS + self.slots * SLOT_WORDS
    }

    /// First word of a slot in the row of a processor.
    pub(super) const fn slot_at(&self, cpu: usize, slot: usize) -> usize {
        cpu * self.row() + FOREIGN_WORDS + slot * SLOT_WORDS
    }

    /// First word of a slot's order of numbers.
    pub(super) const fn order_at(slot: usize) -> usize {
        ORDER + slot * ORDER_WORDS
    }

    /// Loads the program that counts here.
    pub(super) fn program(&self) -> Result<Program> {
        let plan = [
            self.cpus,
            self.slots,
            self.row() * 8,
            (self.bitmap_words - 1) * 8,
            self.log_frames,
            usize::from(self.several_buffers),
        ];
        let plan = Constants::new("sink_plan", &plan.map(|number| number as u64))?;
        let code = Code {
            object: include_bytes!("../../bpf/sink.o"),
            program: "sink",
            names: &[
                ("plan", Place::Value(plan.map())),
                ("control", Place::Value(self.control.map())),
                ("counts", Place::Value(self.counts.map())),
                ("bitmap", Place::Value(self.bitmap.map())),
                ("arrivals", Place::Value(self.log.map())),
            ],
        };
        let options = ProgramOptions { multi_buffer: self.several_buffers };
        Program::load("linerate_sink", &code, &options)
    }
}
