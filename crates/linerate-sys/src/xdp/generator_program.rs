//! What the generator keeps, and what its program (`bpf/generator.c`) is told of the templates.
//!
//! ```text
//! state  0 next number   1 end   2 paced   3 due ns   4 remainder of due   5 step ns
//!        6 remainder of step   7 divisor of remainders   8 moves from  9 burst   10 left of burst
//!       11 late above   12 late   13 worst   14 bytes   15 first   16 last   17 spin below
//!       18 place in mix   19 length of mix   20 trial, stream   21 broken   22 call after a frame
//!       23 service ns   24 room ns   25 busy until   26 could lose   27 pause from   28 pauses
//!       29 away ns   30 stretch since   31 its first number   32 longest stretch   33 its gaps
//!       34 usual time of a frame ns x 16   35 ... mix, bytes   163 ... pauses, number and delay
//! ```
//! Words 22 to 34, the pauses and a bit a frame are `linerate_core::device::SendWatch` in the
//! kernel. It knows more: a frame whose call took longer than usual came to the device later by up
//! to that, and the next one nearer to it.

use linerate_core::device::{FrameTemplate, PAUSES_MAX, SUSPECTS_MAX, Varying};

use crate::Result;
use crate::bpf::{Code, Constants, DeviceMap, MappedArray, Place, Program, ProgramOptions};

pub(super) const NEXT: usize = 0;
pub(super) const END: usize = 1;
pub(super) const PACED: usize = 2;
pub(super) const DUE: usize = 3;
pub(super) const DUE_REST: usize = 4;
pub(super) const STEP: usize = 5;
pub(super) const STEP_REST: usize = 6;
pub(super) const DIVISOR: usize = 7;
pub(super) const MOVES_FROM: usize = 8;
pub(super) const BURST: usize = 9;
pub(super) const BURST_LEFT: usize = 10;
pub(super) const LATE_ABOVE: usize = 11;
pub(super) const LATE: usize = 12;
pub(super) const WORST: usize = 13;
pub(super) const BYTES: usize = 14;
pub(super) const FIRST: usize = 15;
pub(super) const LAST: usize = 16;
pub(super) const SPIN_BELOW: usize = 17;
pub(super) const MIX_AT: usize = 18;
pub(super) const MIX_LENGTH: usize = 19;
pub(super) const SIGNED: usize = 20;
pub(super) const BROKEN: usize = 21;
pub(super) const AFTER: usize = 22;
pub(super) const SERVICE: usize = 23;
pub(super) const ROOM: usize = 24;
pub(super) const BUSY_UNTIL: usize = 25;
pub(super) const COULD_LOSE: usize = 26;
pub(super) const PAUSE_FROM: usize = 27;
pub(super) const PAUSES: usize = 28;
pub(super) const AWAY: usize = 29;
pub(super) const SINCE: usize = 30;
pub(super) const SINCE_NUMBER: usize = 31;
pub(super) const STEADY: usize = 32;
pub(super) const STEADY_GAPS: usize = 33;
pub(super) const USUAL: usize = 34;
pub(super) const MIX: usize = 35;
/// Entries of a mix at most; one byte each.
pub(super) const MIX_MAX: usize = 1024;
/// Number of the frame and its delay, of each pause.
pub(super) const PAUSE: usize = MIX + MIX_MAX / 8;
pub(super) const STATE_WORDS: usize = PAUSE + 2 * PAUSES_MAX;

/// Bytes at the start that are stored one by one: every header that devices rewrite.
const HEADER_BYTES: usize = 128;
/// Templates of a generator.
pub(super) const TEMPLATES_MAX: usize = 16;
/// What the program may name of the payload: an offset of 16 bits and a length of 12.
const PAYLOAD_BYTES: usize = 0xffff + 0xfff;

/// What program and process share.
#[derive(Debug)]
pub(super) struct GeneratorMaps {
    pub(super) state: MappedArray,
    /// A bit a frame: whether it could be lost.
    pub(super) suspects: MappedArray,
    payload: MappedArray,
    device: DeviceMap,
}

impl GeneratorMaps {
    pub(super) fn new(ifindex: u32, templates: &[FrameTemplate]) -> Result<Self> {
        let payload = MappedArray::new("gen_payload", words(PAYLOAD_BYTES))?;
        for (index, template) in templates.iter().enumerate() {
            let first = index * words(longest(templates));
            for (word, chunk) in template.bytes.chunks(8).enumerate() {
                let mut bytes = [0; 8];
                bytes[..chunk.len()].copy_from_slice(chunk);
                payload.set(first + word, u64::from_ne_bytes(bytes));
            }
        }
        Ok(Self {
            state: MappedArray::new("gen_state", STATE_WORDS)?,
            suspects: MappedArray::new("gen_suspects", SUSPECTS_MAX / 64)?,
            payload,
            device: DeviceMap::new(&[ifindex])?,
        })
    }

    /// Loads the program that sends these templates.
    pub(super) fn program(&self, templates: &[FrameTemplate]) -> Result<Program> {
        let mut told = vec![templates.len() as u64];
        for index in 0..TEMPLATES_MAX {
            told.extend(describe(index % templates.len(), templates));
        }
        let told = Constants::new("gen_templates", &told)?;
        let code = Code {
            object: include_bytes!("../../bpf/generator.o"),
            program: "generate",
            names: &[
                ("templates", Place::Value(told.map())),
                ("state", Place::Value(self.state.map())),
                ("suspects", Place::Value(self.suspects.map())),
                ("payload", Place::Value(self.payload.map())),
                ("devices", Place::Map(&self.device)),
            ],
        };
        Program::load("linerate_gen", &code, &ProgramOptions { multi_buffer: false })
    }
}

/// Length of the longest template.
pub(super) fn longest(templates: &[FrameTemplate]) -> usize {
    templates.iter().map(|it| it.bytes.len()).max().unwrap_or(0)
}

const fn words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// The words of one template, in the order of `struct template`.
fn describe(index: usize, templates: &[FrameTemplate]) -> Vec<u64> {
    let template = &templates[index];
    let (length, longest) = (template.bytes.len(), longest(templates));
    let signature_at = template.signature_at();
    let restored = signature_at.min(HEADER_BYTES);
    let mut header = [0; HEADER_BYTES];
    header[..restored].copy_from_slice(&template.bytes[..restored]);
    let mut told: Vec<u64> =
        header.as_chunks().0.iter().map(|it| u64::from_ne_bytes(*it)).collect();
    let payload = if templates.len() > 1 { signature_at - restored } else { 0 };
    let payload_at = index * words(longest) * 8 + restored;
    let sizes = [length, signature_at, restored, longest - length, payload_at, payload];
    told.extend(sizes.map(|it| it as u64));
    let fields = template.varying.len();
    told.extend([template.flows.max(1).into(), template.shuffled.into(), fields as u64]);
    for at in 0..FrameTemplate::VARYING_MAX {
        told.extend(template.varying.get(at).map(field).unwrap_or_default());
    }
    told.extend(header_sum(template).unwrap_or_default());
    told.extend(balance(template).unwrap_or_default());
    told
}

fn field(field: &Varying) -> [u64; 7] {
    [
        field.at.into(),
        field.width.into(),
        field.base.into(),
        field.divisor.max(1).into(),
        field.count.max(1).into(),
        field.in_header_sum.into(),
        field.in_transport_sum.into(),
    ]
}

/// Whether there is a header's checksum to mend, where, and what its sum is without the fields.
fn header_sum(template: &FrameTemplate) -> Option<[u64; 3]> {
    let at = usize::from(template.header_sum?.at);
    let covered = || template.varying.iter().filter(|it| it.in_header_sum);
    covered().next()?;
    let old = u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]);
    let start = u64::from(!old) + covered().map(|it| not_words(it.value(0))).sum::<u64>();
    Some([1, at as u64, start])
}

/// Whether a word keeps the transport's checksum right, where, whether its bytes lie the other way
/// round in the words of the sum, and what it is without the fields and the signature.
fn balance(template: &FrameTemplate) -> Option<[u64; 4]> {
    let at = usize::from(template.balance_at?);
    let odd = (template.signature_at() - at) % 2;
    let old = u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]);
    let covered = template.varying.iter().filter(|it| it.in_transport_sum);
    let start = u64::from(old) + covered.map(|it| u64::from(it.value(0))).sum::<u64>();
    Some([1, at as u64, odd as u64, start])
}

/// Sum of the complements of a value's two words.
fn not_words(value: u32) -> u64 {
    let [high, low] = [value >> 16, value & 0xffff];
    u64::from(!high & 0xffff) + u64::from(!low & 0xffff)
}
