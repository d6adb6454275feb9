//! Any bytes as a message between an agent and its hub: no panic, and a message that survives being
//! written again.

use linerate_core::mesh::{Beat, BeatAnswer, Enrol, Enrolled, RunResults, SignedPlan, Stored};
use linerate_core::tree;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[allow(clippy::duplicate_mod, reason = "an entry stands alone in its fuzz target")]
#[path = "../alike.rs"]
mod alike;
use alike::assert_alike;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    survives::<Beat>(bytes);
    survives::<BeatAnswer>(bytes);
    survives::<Enrol>(bytes);
    survives::<Enrolled>(bytes);
    survives::<RunResults>(bytes);
    survives::<SignedPlan>(bytes);
    survives::<Stored>(bytes);
}

fn survives<T: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) {
    let Ok(message) = tree::from_json_bytes::<T>(bytes) else { return };
    let text = tree::to_json(&message).expect("what was read can be written");
    assert_alike(&tree::from_json::<T>(&text).expect("its own text"), &message);
}
