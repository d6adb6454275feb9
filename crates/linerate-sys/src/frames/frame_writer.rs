//! Writes the varying fields of test frames in user space, with incremental updates of the IPv4 and
//! transport checksums.
//!
//! The header checksum is updated by its changed words (RFC 1624 §3, equation 3); the transport
//! checksum stays, because one word of the payload compensates the changes. Left out: building the
//! template, and the FCS, which the interface appends.

use std::io;

use linerate_core::device::{FrameTemplate, SIGNATURE_BYTES, Signature, Varying};

use crate::{Error, Result};

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;

/// Mark of a buffer without a frame of any template.
pub(crate) const NOTHING: u8 = u8::MAX;

/// Writes the frames of one template.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    template: FrameTemplate,
    trial: u32,
    stream: u8,
    /// Offset of the header checksum, and its complement in the template.
    header: Option<(usize, u16)>,
    /// Offset of the balance word, and its value in the template.
    balance: Option<(usize, u16)>,
    /// True if the signature is at an odd distance from the balance word.
    signature_is_odd: bool,
}

impl FrameWriter {
    /// A writer for one trial.
    /// # Errors
    /// When a field is outside the template, or has another width than 2 or 4.
    pub fn new(template: FrameTemplate, trial: u32, stream: u8) -> Result<Self> {
        check_template(&template).map_err(|text| {
            let source = io::Error::new(io::ErrorKind::InvalidInput, text);
            Error::new("write frames of", format!("{} bytes", template.bytes.len()), source)
        })?;
        let word_at = |at: u16| {
            let at = usize::from(at);
            (at, u16::from_be_bytes([template.bytes[at], template.bytes[at + 1]]))
        };
        let header = template.header_sum.map(|sum| word_at(sum.at)).map(|(at, sum)| (at, !sum));
        let balance = template.balance_at.map(word_at);
        let odd = |at: u16| (template.signature_at() - usize::from(at)) % 2 == 1;
        let signature_is_odd = template.balance_at.is_some_and(odd);
        Ok(Self { template, trial, stream, header, balance, signature_is_odd })
    }

    /// Bytes of the template, which a buffer has to contain before its first frame.
    pub fn template(&self) -> &[u8] {
        &self.template.bytes
    }

    /// Length of every frame, without FCS.
    #[expect(clippy::len_without_is_empty, reason = "no frame is empty")]
    pub const fn len(&self) -> usize {
        self.template.bytes.len()
    }

    /// Writes the varying fields of frame `sequence` into `frame`.
    ///
    /// `frame` is as long as the template and contains it, or any other frame of this writer.
    /// `stamp` is the low 32 bits of the monotonic clock.
    /// # Panics
    /// When `frame` is shorter.
    #[inline]
    pub fn fill_frame(&self, sequence: u64, stamp: u32, frame: &mut [u8]) {
        let mut changed = Changes::default();
        if !self.template.varying.is_empty() {
            let flow = self.template.flow_of(sequence);
            for field in &self.template.varying {
                changed.write(field, flow, frame);
            }
        }
        if let Some((at, complement)) = self.header {
            let sum = !fold_sum(u64::from(complement) + changed.header);
            frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        let signature = Signature { trial: self.trial, stream: self.stream, sequence, stamp };
        let bytes = signature.to_bytes();
        let at = self.template.signature_at();
        frame[at..at + SIGNATURE_BYTES].copy_from_slice(&bytes);
        if let Some((at, word)) = self.balance {
            let signed = fold_sum(sum_of(&bytes));
            let signed = if self.signature_is_odd { signed.swap_bytes() } else { signed };
            let word = fold_sum(
                u64::from(word) + u64::from(!fold_sum(changed.transport + u64::from(signed))),
            );
            frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// Changes of the checksums by varying fields: new words, and the complements of the old ones.
#[derive(Default)]
struct Changes {
    header: u64,
    transport: u64,
}

impl Changes {
    fn write(&mut self, field: &Varying, flow: u32, frame: &mut [u8]) {
        let (value, at) = (field.value_in_flow(flow), usize::from(field.at));
        let difference = if field.width == 2 {
            // A field of two bytes wraps at 65,536.
            let (value, base) = (value as u16, field.base as u16);
            frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
            u64::from(value) + u64::from(!base)
        } else {
            frame[at..at + 4].copy_from_slice(&value.to_be_bytes());
            sum_halves(value) + sum_halves(!field.base)
        };
        if field.in_header_sum {
            self.header += difference;
        }
        if field.in_transport_sum {
            self.transport += difference;
        }
    }
}

const fn sum_halves(value: u32) -> u64 {
    (value >> 16) as u64 + (value & 0xffff) as u64
}

fn sum_of(bytes: &[u8; SIGNATURE_BYTES]) -> u64 {
    bytes.chunks_exact(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

/// Folds a ones' complement sum to 16 bits (RFC 1071 §1).
const fn fold_sum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Checks a template; the error is a text.
fn check_template(template: &FrameTemplate) -> std::result::Result<(), String> {
    let end = template.signature_at();
    if template.bytes.len() < ETHERNET_BYTES + SIGNATURE_BYTES {
        return Err(format!(
            "an Ethernet header and a signature take {} bytes",
            ETHERNET_BYTES + SIGNATURE_BYTES
        ));
    }
    if template.varying.len() > FrameTemplate::VARYING_MAX {
        return Err(format!("at most {} fields may vary", FrameTemplate::VARYING_MAX));
    }
    let sums = template.header_sum.map(|sum| sum.at).into_iter().chain(template.balance_at);
    if sums.into_iter().any(|at| usize::from(at) + 2 > end) {
        return Err("a sum lies behind the end or in the signature".to_owned());
    }
    for field in &template.varying {
        if !matches!(field.width, 2 | 4) {
            return Err(format!("a varying field of {} bytes; 2 and 4 are possible", field.width));
        }
        if usize::from(field.at) + usize::from(field.width) > end {
            return Err("a varying field lies behind the end or in the signature".to_owned());
        }
        let is_odd = |sum: u16| field.at % 2 != sum % 2;
        if field.in_transport_sum && template.balance_at.is_some_and(is_odd)
            || field.in_header_sum && template.header_sum.is_some_and(|sum| is_odd(sum.at))
        {
            return Err("a varying field is at an odd offset within a sum".to_owned());
        }
    }
    Ok(())
}

/// Writers of a stream, one for each template.
#[derive(Clone, Debug)]
pub(crate) struct FrameSet {
    writers: Vec<FrameWriter>,
    trial: u32,
    stream: u8,
}

impl FrameSet {
    /// # Errors
    /// Without a template or with more than 255, and for an invalid one.
    pub(crate) fn new(templates: &[FrameTemplate], trial: u32, stream: u8) -> Result<Self> {
        if templates.is_empty() || templates.len() > usize::from(NOTHING) {
            let text = format!("{} templates; 1 to {NOTHING} are possible", templates.len());
            let source = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(Error::new("write frames of", format!("stream {stream}"), source));
        }
        let writer = |it: &FrameTemplate| FrameWriter::new(it.clone(), trial, stream);
        let writers = templates.iter().map(writer).collect::<Result<_>>()?;
        Ok(Self { writers, trial, stream })
    }

    /// A set of the same trial and stream with other templates.
    pub(crate) fn with_templates(&self, templates: &[FrameTemplate]) -> Result<Self> {
        Self::new(templates, self.trial, self.stream)
    }

    /// Starts another trial with the same templates.
    pub(crate) fn begin_trial(&mut self, trial: u32) {
        self.trial = trial;
        for writer in &mut self.writers {
            writer.trial = trial;
        }
    }

    /// Length of the longest frame.
    pub(crate) fn longest(&self) -> usize {
        self.writers.iter().map(FrameWriter::len).max().unwrap_or(0)
    }

    /// Number of templates.
    pub(crate) const fn template_count(&self) -> usize {
        self.writers.len()
    }

    /// Writes a frame of one template into a buffer that has a frame of the template `held`, and
    /// returns its length.
    #[inline]
    pub(crate) fn fill_frame(
        &self,
        template: u8,
        number: Numbered,
        place: &mut FrameBuffer<'_>,
    ) -> usize {
        let writer = &self.writers[usize::from(template)];
        let frame = &mut place.bytes[..writer.len()];
        if *place.held != template {
            frame.copy_from_slice(writer.template());
            *place.held = template;
        }
        writer.fill_frame(number.sequence, number.stamp, frame);
        frame.len()
    }
}

/// Sequence and timestamp for the signature of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) sequence: u64,
    pub(crate) stamp: u32,
}

/// Buffer for a frame.
pub(crate) struct FrameBuffer<'a> {
    /// Bytes of the buffer, at least as long as the longest frame.
    pub(crate) bytes: &'a mut [u8],
    /// Template of the frame in the buffer, or [`NOTHING`].
    pub(crate) held: &'a mut u8,
}

#[cfg(test)]
mod tests {
    use linerate_core::device::HeaderSum;

    use super::*;

    /// The ones' complement sum of bytes from an even offset on, added up word by word.
    fn plain_sum(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The sum over a UDP datagram in IPv4 with its pseudo-header, checksum included: all ones
    /// when right (RFC 768, RFC 1071 §1).
    fn transport_sum(frame: &[u8]) -> u16 {
        let mut covered = frame[26..34].to_vec();
        covered.extend([0, 17]);
        covered.extend(((frame.len() - 34) as u16).to_be_bytes());
        covered.extend(&frame[34..]);
        plain_sum(&covered)
    }

    fn varying_field(at: u16, width: u8, base: u32, in_header_sum: bool) -> Varying {
        let in_transport_sum = true;
        Varying { at, width, base, divisor: 1, count: 1000, in_header_sum, in_transport_sum }
    }

    /// UDP in IPv4 in a frame of `len` bytes, both addresses and both ports varying.
    fn template(len: usize) -> FrameTemplate {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1]);
        bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
        let header = !plain_sum(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&header.to_be_bytes());
        bytes.extend([0xff, 0xf0, 0, 9, 0, 0, 0, 0]);
        bytes[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
        bytes.resize(len - SIGNATURE_BYTES, 0x5a);
        bytes.resize(len, 0);
        let udp = !transport_sum(&bytes);
        bytes[40..42].copy_from_slice(&udp.to_be_bytes());
        let mut varying =
            vec![varying_field(26, 4, 0xc612_0001, true), varying_field(30, 4, 0xc613_0001, true)];
        varying.extend([varying_field(34, 2, 0xfff0, false), varying_field(36, 2, 9, false)]);
        FrameTemplate {
            bytes,
            varying,
            flows: 1_000_000,
            shuffled: true,
            header_sum: Some(HeaderSum { at: 24 }),
            balance_at: Some(42),
        }
    }

    #[test]
    fn both_sums_of_every_frame_are_those_added_up_afresh() {
        for len in [60, 61, 64, 65, 1514, 1515] {
            let template = template(len);
            let writer = FrameWriter::new(template.clone(), 0xdead_beef, 3).expect("a template");
            let mut frame = template.bytes.clone();
            for sequence in (0..3000).chain([u64::MAX >> 8, 1 << 40]) {
                let stamp = (sequence as u32).wrapping_mul(0x9e37_79b9);
                writer.fill_frame(sequence, stamp, &mut frame);
                assert_eq!(plain_sum(&frame[14..34]), 0xffff, "header, {len} bytes, {sequence}");
                assert_eq!(transport_sum(&frame), 0xffff, "UDP, {len} bytes, {sequence}");
                let expected = Signature { trial: 0xdead_beef, stream: 3, sequence, stamp };
                assert_eq!(Signature::at_end_of(&frame), Some(expected));
                let flow = template.flow_of(sequence);
                let address = u32::from_be_bytes([frame[26], frame[27], frame[28], frame[29]]);
                assert_eq!(address, 0xc612_0001 + flow % 1000);
                // 0xfff0 and up to 999 more, around at 65,536.
                let port = u16::from_be_bytes([frame[34], frame[35]]);
                assert_eq!(u32::from(port), (0xfff0 + flow % 1000) & 0xffff);
            }
        }
    }

    #[test]
    fn nothing_else_of_a_frame_changes() {
        let template = template(128);
        let writer = FrameWriter::new(template.clone(), 1, 2).expect("a template");
        let mut frame = template.bytes.clone();
        writer.fill_frame(77, 88, &mut frame);
        let fixed = [0..24, 38..42, 44..128 - SIGNATURE_BYTES];
        for range in fixed {
            assert_eq!(frame[range.clone()], template.bytes[range]);
        }
    }

    #[test]
    fn a_place_takes_frames_of_templates_in_turn() {
        let templates = [template(60), template(128)];
        let set = FrameSet::new(&templates, 1, 2).expect("templates");
        let (mut bytes, mut held) = (vec![0; set.longest()], NOTHING);
        for (sequence, index) in [0u8, 1, 1, 0, 0].into_iter().enumerate() {
            let number = Numbered { sequence: sequence as u64, stamp: 9 };
            let mut place = FrameBuffer { bytes: &mut bytes, held: &mut held };
            let len = set.fill_frame(index, number, &mut place);
            assert_eq!(len, templates[usize::from(index)].bytes.len());
            assert_eq!(transport_sum(&bytes[..len]), 0xffff);
        }
    }

    #[test]
    fn templates_that_cannot_be_are_refused_in_one_line() {
        let refused = |change: fn(&mut FrameTemplate)| {
            let mut template = template(60);
            change(&mut template);
            FrameWriter::new(template, 1, 1).expect_err("refused").to_string()
        };
        let text = refused(|template| template.bytes.truncate(29));
        assert_eq!(
            text,
            "write frames of 29 bytes: an Ethernet header and a signature take 30 bytes"
        );
        for change in [
            (|template| template.varying[0].width = 3) as fn(&mut FrameTemplate),
            |template| template.varying[0].at = 43,
            |template| template.varying[0].at = 25,
            |template| template.varying.push(template.varying[0]),
            |template| template.balance_at = Some(43),
            |template| template.header_sum = Some(HeaderSum { at: 60 }),
        ] {
            assert!(!refused(change).contains('\n'));
        }
        assert!(FrameSet::new(&[], 1, 1).is_err());
    }
}
