//! One frame of a template, the plain way: what every generator has to give the same.

use linerate_core::bench::{FrameTemplate, Signature};

use crate::frame::checksum::Sum;

/// The bytes of the frame with the signature's number, from destination address to signature.
///
/// Fields take the values of its flow. The header checksum is corrected by the difference (RFC
/// 1624 equation 3). The balance word takes up the difference of fields and signature.
pub fn fill(template: &FrameTemplate, signature: Signature) -> Vec<u8> {
    let mut bytes = template.bytes.clone();
    let flow = template.flow_of(signature.sequence);
    let (mut header, mut transport) = (Sum::default(), Sum::default());
    for field in &template.varying {
        let value = field.value(flow);
        let at = usize::from(field.at);
        if field.width == 2 {
            // Fields of two bytes hold no more than 65,535.
            bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
        } else {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        let difference = changed(field.base, value);
        header = if field.in_header_sum { header.plus(difference) } else { header };
        transport = if field.in_transport_sum { transport.plus(difference) } else { transport };
    }
    let at = template.signature_at();
    bytes[at..].copy_from_slice(&signature.to_bytes());
    if let Some(sum) = template.header_sum {
        let at = usize::from(sum.at);
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let new = header.plus(Sum::of_u16(!old)).checksum();
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
    if let Some(balance) = template.balance_at {
        let at = usize::from(balance);
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        // The signature was zeros: its words are its difference.
        let difference = transport.plus(Sum::of(&signature.to_bytes())).folded();
        let new = Sum::of_u16(old).plus(Sum::of_u16(!difference)).folded();
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
    bytes
}

/// What a sum grows by when `old` becomes `new`.
fn changed(old: u32, new: u32) -> Sum {
    Sum::of_u64(u64::from(!old)).plus(Sum::of_u64(u64::from(new)))
}
