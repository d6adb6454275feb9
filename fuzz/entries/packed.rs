//! Any bytes as a packed body between an agent and its hub: no panic, never more unpacked than is
//! allowed, and bodies that are what was packed.

#[path = "../../crates/linerate-mesh/src/pack.rs"]
#[allow(dead_code, reason = "names of the encoding are the talk's")]
mod pack;

/// Most that is unpacked here.
const UNPACKED_BYTES_MAX: u64 = 1 << 16;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    match pack::unpacked(bytes, UNPACKED_BYTES_MAX) {
        Ok(body) => assert!(body.len() as u64 <= UNPACKED_BYTES_MAX),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

/// What is sent of a body.
#[allow(dead_code, reason = "the target of cargo-fuzz has no corpus to pack")]
pub(crate) fn packed(body: &[u8]) -> Vec<u8> {
    pack::packed(body)
}
