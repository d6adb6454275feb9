//! The AES-128 block function, which encrypts one block of 16 bytes (FIPS 197). The schedule of
//! random times needs it, a few blocks a second and nothing secret: no care is taken that its time
//! does not depend on the key. Decryption and modes are left out.

/// Rounds of a key of 128 bits.
const ROUNDS: usize = 10;
/// x^8 + x^4 + x^3 + x + 1 without its highest term (FIPS 197 §4.2).
const REDUCTION: u8 = 0x1b;
const S_BOX: [u8; 256] = s_box();
/// The column that a byte of row 0 becomes by SubBytes and MixColumns; those of the other rows are
/// the same, rotated.
const COLUMNS: [u32; 256] = columns();

/// The expanded key of AES-128.
#[derive(Clone, Debug)]
pub struct Aes128 {
    /// Four columns a round.
    round_keys: [[u32; 4]; ROUNDS + 1],
}

impl Aes128 {
    /// Expands a key (FIPS 197 §5.2).
    pub fn new(key: [u8; 16]) -> Self {
        let mut words = columns_of(key);
        let mut round_keys = [words; ROUNDS + 1];
        let mut constant = 1;
        for round_key in &mut round_keys[1..] {
            let last = words[3].rotate_left(8).to_be_bytes();
            let replaced = last.map(|byte| S_BOX[byte as usize]);
            words[0] ^= u32::from_be_bytes(replaced) ^ u32::from(constant) << 24;
            words[1] ^= words[0];
            words[2] ^= words[1];
            words[3] ^= words[2];
            *round_key = words;
            constant = doubled(constant);
        }
        Self { round_keys }
    }

    /// The block, encrypted (FIPS 197 §5.1).
    pub fn encrypt(&self, block: [u8; 16]) -> [u8; 16] {
        let mut state = columns_of(block);
        let [first, middle @ .., last] = &self.round_keys;
        (0..4).for_each(|at| state[at] ^= first[at]);
        for key in middle {
            let before = state;
            for at in 0..4 {
                let column = |row: usize| COLUMNS[shifted(&before, at, row) as usize];
                state[at] = key[at]
                    ^ column(0)
                    ^ column(1).rotate_right(8)
                    ^ column(2).rotate_right(16)
                    ^ column(3).rotate_right(24);
            }
        }
        let mut encrypted = [0; 16];
        for (at, four) in encrypted.chunks_exact_mut(4).enumerate() {
            let replaced = [0, 1, 2, 3].map(|row| S_BOX[shifted(&state, at, row) as usize]);
            four.copy_from_slice(&(u32::from_be_bytes(replaced) ^ last[at]).to_be_bytes());
        }
        encrypted
    }
}

/// The byte of a row in a column after ShiftRows: row r moves left by r.
fn shifted(state: &[u32; 4], column: usize, row: usize) -> u8 {
    state[(column + row) % 4].to_be_bytes()[row]
}

/// The state lies column by column.
fn columns_of(bytes: [u8; 16]) -> [u32; 4] {
    let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    [0, 4, 8, 12].map(|at| u32::from_be_bytes(word(at)))
}

/// 2, 1, 1 and 3 times each byte's replacement (FIPS 197 §5.1.3).
const fn columns() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let replaced = S_BOX[byte];
        let twice = doubled(replaced);
        table[byte] = u32::from_be_bytes([twice, replaced, replaced, twice ^ replaced]);
        byte += 1;
    }
    table
}

/// A byte times x.
const fn doubled(byte: u8) -> u8 {
    (byte << 1) ^ if byte >> 7 == 1 { REDUCTION } else { 0 }
}

/// Each byte's inverse, put through the affine map (FIPS 197 §5.1.1). 3 generates all bytes but 0,
/// so that multiplying one by 3 while dividing the other by it meets every byte with its inverse.
const fn s_box() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut byte, mut inverse) = (1u8, 1u8);
    loop {
        byte ^= doubled(byte);
        // 0xf6 is the inverse of 3.
        inverse = gf_multiply(inverse, 0xf6);
        let turned = inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4);
        table[byte as usize] = inverse ^ turned ^ 0x63;
        if byte == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
}

const fn gf_multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = doubled(a);
        b >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_from_hex(hex: u128) -> [u8; 16] {
        hex.to_be_bytes()
    }

    #[test]
    fn the_examples_of_fips_197_come_out() {
        // Appendix B, appendix C.1.
        let cases = [
            (
                0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c,
                0x3243_f6a8_885a_308d_3131_98a2_e037_0734,
                0x3925_841d_02dc_09fb_dc11_8597_196a_0b32,
            ),
            (
                0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
                0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
                0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a,
            ),
        ];
        for (key, plain, encrypted) in cases {
            let got = Aes128::new(block_from_hex(key)).encrypt(block_from_hex(plain));
            assert_eq!(u128::from_be_bytes(got), encrypted);
        }
    }

    #[test]
    fn the_last_round_key_is_that_of_appendix_a_1() {
        let key = Aes128::new(block_from_hex(0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c));
        let expected = [0xd014_f9a8, 0xc9ee_2589, 0xe13f_0cc8, 0xb663_0ca6];
        assert_eq!(key.round_keys[ROUNDS], expected);
    }
}
