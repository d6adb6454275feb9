//! What running tests of a client may use together: a rule holds for a client, whatever the number
//! of its tests, their programs and its addresses of one IPv6 network.
//!
//! Streams and rate are a client's (an IPv4 address, an IPv6 /64), bytes those of its network, as
//! the [`Ledger`] counts them. A test reserves what it may use and gives it back at its end.

use std::net::IpAddr;

use super::ledger::{DAY_MS, InUse, Ledger};
use super::prefix::{Prefix, client_network, client_place};
use super::text::{Policy, Rule};
use crate::time::WallTime;
use crate::units::{BitRate, Bytes};

/// Limits of a test: streams, rate and bytes that it may use at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// Streams of both directions.
    pub streams: usize,
    /// Rate of one direction, bit/s; none where nothing bounds it.
    pub rate_bps: Option<u64>,
    /// Bytes of both directions; none where nothing bounds them.
    pub bytes: Option<u64>,
}

/// A reservation, to be given back by [`Ledger::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reserved {
    client: Prefix,
    network: Prefix,
    want: Want,
}

impl Ledger {
    /// Reserves the limits of a client's test beside the client's other tests and today's bytes.
    pub fn reserve(
        &mut self,
        policy: &Policy,
        rule: &Rule,
        now: WallTime,
        client: IpAddr,
        want: Want,
    ) -> Result<Reserved, Vec<String>> {
        if let Some(spent) = self.exhausted_budget(policy, rule, now, client) {
            return Err(vec![spent.say]);
        }
        let (place, network) = (client_place(client), client_network(client));
        let in_use = self.in_use.get(&place).copied().unwrap_or_default();
        let exceeded: Vec<String> = [
            in_use.exceeds_streams(rule, want),
            in_use.exceeds_rate(rule, want),
            self.exceeds_bytes(policy, rule, now, client, want),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !exceeded.is_empty() {
            return Err(exceeded);
        }
        let in_use = self.in_use.entry(place).or_default();
        in_use.tests += 1;
        in_use.streams += want.streams;
        in_use.rate_bps = in_use.rate_bps.saturating_add(want.rate_bps.unwrap_or(0));
        let bytes = want.bytes.unwrap_or(0);
        self.reserved_all = self.reserved_all.saturating_add(bytes);
        let reserved = self.reserved.entry(network).or_default();
        *reserved = reserved.saturating_add(bytes);
        Ok(Reserved { client: place, network, want })
    }

    /// Releases a test's reservation; the bytes that it moved are charged apart.
    pub fn release(&mut self, reserved: Reserved) {
        let Reserved { client, network, want } = reserved;
        if let Some(in_use) = self.in_use.get_mut(&client) {
            in_use.tests = in_use.tests.saturating_sub(1);
            in_use.streams = in_use.streams.saturating_sub(want.streams);
            in_use.rate_bps = in_use.rate_bps.saturating_sub(want.rate_bps.unwrap_or(0));
            if in_use.tests == 0 {
                self.in_use.remove(&client);
            }
        }
        let bytes = want.bytes.unwrap_or(0);
        self.reserved_all = self.reserved_all.saturating_sub(bytes);
        if let Some(reserved) = self.reserved.get_mut(&network) {
            *reserved = reserved.saturating_sub(bytes);
            if *reserved == 0 {
                self.reserved.remove(&network);
            }
        }
    }

    /// Bytes that a client's budgets leave beside what is reserved; none without a budget.
    pub fn bytes_left(
        &mut self,
        policy: &Policy,
        rule: &Rule,
        now: WallTime,
        client: IpAddr,
    ) -> Option<u64> {
        let (all, own) = self.bytes_today(now, client);
        let reserved = self.reserved.get(&client_network(client)).copied().unwrap_or(0);
        let own = own.saturating_add(reserved);
        let all = all.saturating_add(self.reserved_all);
        let left = |most: Option<Bytes>, used| most.map(|bytes| bytes.count().saturating_sub(used));
        [left(rule.bytes_per_client_per_day, own), left(policy.bytes_per_day, all)]
            .into_iter()
            .flatten()
            .min()
    }

    fn exceeds_bytes(
        &mut self,
        policy: &Policy,
        rule: &Rule,
        now: WallTime,
        client: IpAddr,
        want: Want,
    ) -> Option<String> {
        let wanted = want.bytes?;
        let (all, own) = self.bytes_today(now, client);
        let network = client_network(client);
        let own = own.saturating_add(self.reserved.get(&network).copied().unwrap_or(0));
        let all = all.saturating_add(self.reserved_all);
        let whose = [
            (rule.bytes_per_client_per_day, own, network.to_string()),
            (policy.bytes_per_day, all, "this server".to_owned()),
        ];
        whose.into_iter().find_map(|(most, used, whose)| {
            let most = most?;
            let left = most.count().saturating_sub(used);
            let minutes = (DAY_MS - now.unix_millis() % DAY_MS).div_ceil(60_000);
            (wanted > left).then(|| {
                format!(
                    "it may move {}; of the {most} a day of {whose} {} are left, running tests \
                     counted; it renews at 00:00 UTC, in {} h {} min",
                    Bytes::new(wanted).transferred(),
                    Bytes::new(left).transferred(),
                    minutes / 60,
                    minutes % 60
                )
            })
        })
    }
}

impl InUse {
    fn exceeds_streams(&self, rule: &Rule, want: Want) -> Option<String> {
        let most = rule.streams?;
        let all = self.streams + want.streams;
        // Of the test alone the policy has said so.
        (self.streams > 0 && all > usize::from(most))
            .then(|| format!("{all} streams with this client's other tests; the limit is {most}"))
    }

    fn exceeds_rate(&self, rule: &Rule, want: Want) -> Option<String> {
        let most = rule.rate?;
        let all = self.rate_bps.saturating_add(want.rate_bps?);
        (self.rate_bps > 0 && all > most.bits_per_sec()).then(|| {
            let all = BitRate::from_bits_per_sec(all);
            format!("{all} with this client's other tests; the limit is {most}")
        })
    }
}
