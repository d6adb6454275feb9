//! `linerate bench`: a device between interfaces of this host, measured by raw frames.
//!
//! Flags become plans, one for each frame length; what is wrong with them is said before anything
//! is sent. Only interfaces that the user names are used, and none by which this host reaches the
//! rest of the world (RFC 6815: such tests belong on networks of their own).

mod check;
mod contract;
mod defaults;
mod device;
mod device_lab;
mod flags;
mod goal;
mod here;
mod mix;
mod opening;
mod port;
mod progress;
mod result;
mod run;
mod suite;
mod words;

pub(crate) use flags::Args;

use crate::exit::Outcome;

/// Runs `linerate bench` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    run::run(&args)
}
