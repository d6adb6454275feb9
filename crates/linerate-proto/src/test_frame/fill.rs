//! One frame of a template, built in the simplest way: the reference for every generator.

use linerate_core::device::{FrameTemplate, Signature};

use crate::frame::checksum::Sum;

/// Bytes of the frame with this signature, from destination address to signature.
///
/// Varying fields have the values of the frame's flow. The header checksum is updated by the
/// difference (RFC 1624 equation 3). The balance word compensates the changes of fields and
/// signature; a signature at an odd distance from it is byte-swapped in the checksum's words.
pub fn fill_frame(template: &FrameTemplate, signature: Signature) -> Vec<u8> {
    let mut bytes = template.bytes.clone();
    let flow = template.flow_of(signature.sequence);
    let (mut header, mut transport) = (Sum::default(), Sum::default());
    for field in &template.varying {
        let value = field.value_in_flow(flow);
        let at = usize::from(field.at);
        if field.width == 2 {
            // Fields of two bytes hold no more than 65,535.
            bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
        } else {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        let difference = sum_change(field.base, value);
        header = if field.in_header_sum { header.add_sum(difference) } else { header };
        transport = if field.in_transport_sum { transport.add_sum(difference) } else { transport };
    }
    let at = template.signature_at();
    bytes[at..].copy_from_slice(&signature.to_bytes());
    if let Some(sum) = template.header_sum {
        let at = usize::from(sum.at);
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let new = header.add_sum(Sum::of_u16(!old)).checksum();
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
    if let Some(balance) = template.balance_at {
        let at = usize::from(balance);
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        // The template's signature is zeros, so its words are the difference.
        let signed = Sum::from_bytes(&signature.to_bytes()).folded();
        let is_odd = (template.signature_at() - at) % 2 == 1;
        let signed = if is_odd { signed.swap_bytes() } else { signed };
        let difference = transport.add_sum(Sum::of_u16(signed)).folded();
        let new = Sum::of_u16(old).add_sum(Sum::of_u16(!difference)).folded();
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
    bytes
}

/// Difference of a checksum's sum when `old` becomes `new`.
fn sum_change(old: u32, new: u32) -> Sum {
    Sum::of_u64(u64::from(!old)).add_sum(Sum::of_u64(u64::from(new)))
}

#[cfg(test)]
mod tests {
    use linerate_core::device::{HeaderSum, Varying};

    use super::*;

    #[test]
    fn the_example_of_rfc_1624_holds_both_ways() {
        // RFC 1624 §4: checksum dd2f, a word goes from 5555 to 3285, the checksum is 0000. Fields
        // only grow, so from 3285 to 5555: ~(ffff + cd7a + 5555) = ~22d0 = dd2f.
        let field = Varying {
            at: 0,
            width: 2,
            base: 0x3285,
            divisor: 1,
            count: 0x22d1,
            in_header_sum: true,
            in_transport_sum: true,
        };
        let mut bytes = vec![0; 22];
        bytes[..2].copy_from_slice(&[0x32, 0x85]);
        let template = FrameTemplate {
            bytes,
            varying: vec![field],
            flows: 0x22d1,
            shuffled: false,
            header_sum: Some(HeaderSum { at: 2 }),
            balance_at: Some(4),
        };
        let signature = Signature { trial: 0, stream: 0, sequence: 0x5555 - 0x3285, stamp: 0 };
        let frame = fill_frame(&template, signature);
        assert_eq!(frame[..4], [0x55, 0x55, 0xdd, 0x2f]);
        // The balance word falls by what the others grow: 22d0 of the field and 22d0 of the number
        // in the signature, 0 - 45a0 = ba5f in one's complement.
        assert_eq!(frame[4..6], [0xba, 0x5f]);
    }
}
