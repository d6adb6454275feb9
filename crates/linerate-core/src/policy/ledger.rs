//! Bytes that tests moved today, in all and by client network.

use std::collections::HashMap;
use std::mem::take;
use std::net::IpAddr;

use super::prefix::{Prefix, client_network};
use super::text::{Policy, Rule};
use crate::time::WallTime;

/// Milliseconds of a day (UTC has no others).
pub(super) const DAY_MS: u64 = 86_400_000;
/// Networks with a count of their own; those beyond share one count, which can only be too strict.
const NETWORKS_MAX: usize = 65_536;

/// A count of bytes that starts anew at 00:00 UTC.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    day: u64,
    all: u64,
    networks: HashMap<Prefix, u64>,
    others: u64,
    /// Reservations of running tests, by client.
    pub(super) in_use: HashMap<Prefix, InUse>,
    /// Bytes that running tests may move, by network and in all.
    pub(super) reserved: HashMap<Prefix, u64>,
    pub(super) reserved_all: u64,
}

/// A budget that is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// The limit that is used up, and the time at which it renews.
    pub say: String,
    /// Time until it renews, milliseconds.
    pub renews_ms: u64,
}

/// Reservations of one client's tests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InUse {
    pub(super) tests: usize,
    pub(super) streams: usize,
    pub(super) rate_bps: u64,
}

impl Ledger {
    fn start_day(&mut self, now: WallTime) {
        let day = now.unix_millis() / DAY_MS;
        if day != self.day {
            // What runs goes on.
            let (in_use, reserved) = (take(&mut self.in_use), take(&mut self.reserved));
            let reserved_all = self.reserved_all;
            *self = Self { day, in_use, reserved, reserved_all, ..Self::default() };
        }
    }

    /// Counts the bytes of a client's test.
    pub fn charge(&mut self, now: WallTime, client: IpAddr, bytes: u64) {
        self.start_day(now);
        self.all = self.all.saturating_add(bytes);
        let network = client_network(client);
        let full = self.networks.len() >= NETWORKS_MAX && !self.networks.contains_key(&network);
        let count = if full { &mut self.others } else { self.networks.entry(network).or_default() };
        *count = count.saturating_add(bytes);
    }

    /// Counts bytes to a client that are in the count of all already.
    pub fn attribute(&mut self, now: WallTime, client: IpAddr, bytes: u64) {
        self.start_day(now);
        let all = self.all;
        self.charge(now, client, bytes);
        self.all = all;
    }

    /// Bytes of today in all, and of a client's network.
    pub fn bytes_today(&mut self, now: WallTime, client: IpAddr) -> (u64, u64) {
        self.start_day(now);
        let own = self.networks.get(&client_network(client)).copied();
        (self.all, own.unwrap_or(if self.networks.len() < NETWORKS_MAX { 0 } else { self.others }))
    }

    /// The budget that leaves nothing to a client of a rule, if one does.
    pub fn exhausted_budget(
        &mut self,
        policy: &Policy,
        rule: &Rule,
        now: WallTime,
        client: IpAddr,
    ) -> Option<Spent> {
        let (all, own) = self.bytes_today(now, client);
        let renews_ms = DAY_MS - now.unix_millis() % DAY_MS;
        let minutes = renews_ms.div_ceil(60_000);
        let when = format!("renews at 00:00 UTC, in {} h {} min", minutes / 60, minutes % 60);
        let full =
            |most: Option<crate::units::Bytes>, used| most.filter(|bytes| used >= bytes.count());
        let say = match (full(policy.bytes_per_day, all), full(rule.bytes_per_client_per_day, own))
        {
            (_, Some(most)) => {
                format!("the {most} a day of {} are used up; it {when}", client_network(client))
            }
            (Some(most), None) => format!("the {most} a day of this server are used up; it {when}"),
            (None, None) => return None,
        };
        Some(Spent { say, renews_ms })
    }
}
