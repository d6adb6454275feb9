//! What a server allows: who may test, what, how fast, how long, how much a day, and where the
//! server itself may measure to.
//!
//! A policy is a file of rules. The first rule whose clients match decides, and nothing behind it
//! is looked at; a client that no rule names is refused. Here a file is read and a question is
//! answered; the server's gate asks.

mod decide;
mod ledger;
mod prefix;
mod reserve;
mod text;

pub use decide::{Act, PolicyDecision, PolicyRequest};
pub use ledger::{Ledger, Spent};
pub use prefix::{Prefix, client_network, client_place, is_private, is_public};
pub use reserve::{Reserved, Want};
pub use text::{Keep, Policy, Program, Rule, TestKind, TokenDigest, TokenRow, parse_digest};

#[cfg(test)]
mod tests;
