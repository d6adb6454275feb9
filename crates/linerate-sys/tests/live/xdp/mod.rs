//! The counter, the generator and the devices in the receive path, on veth pairs between
//! namespaces that the tests make.
//!
//! What the generator sends is looked at with a packet capture and with checksums that are
//! computed here, byte by byte; what the counter says is compared with frames that are sent one by
//! one. Rounds are shorter than a veth's ring (256), so that a busy machine loses nothing.
//!
//! Needs the privilege to make network namespaces and to load programs; says so and passes when it
//! is absent.
#![allow(clippy::print_stdout, reason = "skipped tests say so")]

mod balance;
mod bench;
mod counting;
mod devices;
mod frames;
mod generating;
