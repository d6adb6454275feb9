//! The policy in force, and what clients moved of their bytes of the day.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use linerate_core::policy::{
    Act, Ledger, Policy, PolicyRequest, Program, Reserved, TokenDigest, Want,
};
use linerate_engine::flow::admission::{Allowed, Demand};
use linerate_engine::flow::moved;
use linerate_proto::native::{Nonce, Proof, Refuse, RefuseCode};
use linerate_sys::clock::wall_time;

/// A client as the policy sees it: protocol, address and token.
#[derive(Clone, Copy, Debug)]
pub struct PolicyClient {
    /// Program whose protocol the client speaks.
    pub program: Program,
    /// Address that the client connects from.
    pub address: IpAddr,
    /// SHA-256 of the token that it shows.
    pub token: Option<TokenDigest>,
}

impl PolicyClient {
    /// A client that shows no token.
    pub const fn without_token(program: Program, address: IpAddr) -> Self {
        Self { program, address, token: None }
    }
}

/// Limits of a client's rule, and the bytes that are left of the day.
#[cfg(feature = "web")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientAllowance {
    pub(crate) rate_bps: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) streams: Option<u16>,
    /// Bytes that the client may still move today.
    pub(crate) bytes: Option<u64>,
}

/// Asks the policy, where there is one.
#[derive(Debug, Default)]
pub(crate) struct PolicyGuard {
    policy: RwLock<Option<Arc<Policy>>>,
    ledger: Arc<Mutex<Ledger>>,
    /// Counts of clients whose address is not proven, so that a forged one costs its owner nothing.
    unproven: Arc<Mutex<Ledger>>,
}

/// A test's reservation out of its client's limits, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    ledger: Arc<Mutex<Ledger>>,
    reserved: Option<Reserved>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(reserved) = self.reserved.take() {
            self.ledger.lock().unwrap_or_else(PoisonError::into_inner).release(reserved);
        }
    }
}

/// Conditions under which a test is checked against the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyTerms {
    /// The longest that any test of this server may take.
    pub(crate) duration_max: Duration,
    /// Its client's address is proven.
    pub(crate) is_proven: bool,
    /// It is a stream more of a test that has reserved rate and bytes.
    pub(crate) joins: bool,
}

impl PolicyGuard {
    pub(crate) fn set_policy(&self, policy: Policy) {
        moved::start_counting();
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(policy));
    }

    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts bytes that no stream of the engine counts.
    #[cfg(feature = "datagrams")]
    pub(crate) fn charge(&self, client: IpAddr, bytes: u64) {
        if self.policy().is_some() {
            self.with_ledger(|ledger| ledger.charge(wall_time(), client, bytes));
        }
    }

    /// The same of a client whose address nothing proves.
    pub(crate) fn charge_unproven(&self, client: IpAddr, bytes: u64) {
        if self.policy().is_some() {
            let mut ledger = self.unproven.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.charge(wall_time(), client, bytes);
        }
    }

    /// Counts to a client the bytes of a measurement from this host, whose streams the engine has
    /// counted already.
    #[cfg(feature = "web")]
    pub(crate) fn attribute(&self, client: IpAddr, bytes: u64) {
        if self.policy().is_some() {
            self.with_ledger(|ledger| ledger.attribute(wall_time(), client, bytes));
        }
    }

    /// Networks that this host may measure to for a client.
    #[cfg(feature = "web")]
    pub(crate) fn targets(&self, client: &PolicyClient) -> Vec<String> {
        let Some(policy) = self.policy() else { return Vec::new() };
        let rule = policy.rule_of(client.address, client.token.as_ref(), wall_time());
        rule.map(|rule| rule.measure_to.iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    fn with_ledger<T>(&self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for (client, bytes) in moved::take_client_bytes() {
            ledger.charge(wall_time(), client, bytes);
        }
        work(&mut ledger)
    }

    /// Checks a test against the policy, and reserves its part of the client's limits.
    pub(crate) fn check_demand(
        &self,
        demand: &Demand,
        client: &PolicyClient,
        terms: PolicyTerms,
    ) -> Result<Option<Reservation>, Refuse> {
        let Some(policy) = self.policy() else { return Ok(None) };
        let Demand { streams, planned, kind, rate_bps, .. } = *demand;
        let PolicyClient { program, address, token } = *client;
        let act = Act::Test { kind, program, rate_bps, time: planned, streams };
        let decision =
            policy.decide(&PolicyRequest { from: address, token, now: wall_time(), act });
        if let Some(reason) = decision.refused {
            return Err(Refuse::new(RefuseCode::Policy, reason));
        }
        let Some(rule) = decision.rule else { return Ok(None) };
        let most = rule.time.unwrap_or(terms.duration_max).min(terms.duration_max);
        let span = planned.unwrap_or(most);
        let bytes = |bps: u64| {
            let bits = u128::from(bps) * u128::from(demand.ways.max(1)) * span.as_nanos();
            u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX)
        };
        let want = match terms.joins {
            true => Want { streams, ..Want::default() },
            false => {
                Want { streams, rate_bps, bytes: demand.bytes.or_else(|| rate_bps.map(bytes)) }
            }
        };
        let ledger = if terms.is_proven { &self.ledger } else { &self.unproven };
        let reserve = |ledger: &mut Ledger| {
            // Tests over HTTP are ended by this host where the budget ends.
            let left = ledger.bytes_left(&policy, rule, wall_time(), address).unwrap_or(u64::MAX);
            let most = if program == Program::Http { left } else { u64::MAX };
            let want = Want { bytes: want.bytes.map(|bytes| bytes.min(most)), ..want };
            ledger.reserve(&policy, rule, wall_time(), address, want)
        };
        let reserved = match terms.is_proven {
            true => self.with_ledger(reserve),
            false => reserve(&mut ledger.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        let refuse = |exceeded: Vec<String>| {
            let reason = format!("rule {:?}: {}", rule.name, exceeded.join("; "));
            Refuse::new(RefuseCode::Policy, reason)
        };
        let reserved = Some(reserved.map_err(refuse)?);
        Ok(Some(Reservation { ledger: Arc::clone(ledger), reserved }))
    }

    /// The limits of a client's rule, and the name of that.
    pub(crate) fn allowed(&self, client: &PolicyClient) -> Option<(String, Allowed)> {
        let policy = self.policy()?;
        let rule = policy.rule_of(client.address, client.token.as_ref(), wall_time())?;
        let allowed = Allowed {
            time: rule.time,
            rate_bps: rule.rate.map(|rate| rate.bits_per_sec()),
            streams: rule.streams,
        };
        Some((rule.name.clone(), allowed))
    }

    /// True where some rule matches a client without a token; others get no answer over UDP.
    pub(crate) fn has_rule_for(&self, client: IpAddr) -> bool {
        let Some(policy) = self.policy() else { return true };
        policy.rule_of(client.to_canonical(), None, wall_time()).is_some()
    }

    /// Decision of the policy on an act that is no test; none without a policy.
    #[cfg(feature = "web")]
    pub(crate) fn allows(&self, act: Act, client: &PolicyClient) -> Option<Result<(), String>> {
        let policy = self.policy()?;
        let PolicyClient { address, token, .. } = *client;
        let decision =
            policy.decide(&PolicyRequest { from: address, token, now: wall_time(), act });
        Some(decision.refused.map_or(Ok(()), Err))
    }

    /// Limits of a client's rule, and the bytes that are left of the day.
    #[cfg(feature = "web")]
    pub(crate) fn allowance(&self, client: &PolicyClient) -> ClientAllowance {
        let Some(policy) = self.policy() else { return ClientAllowance::default() };
        let now = wall_time();
        let rule = policy.rule_of(client.address, client.token.as_ref(), now);
        let Some(rule) = rule else { return ClientAllowance::default() };
        let (all, own) = self.with_ledger(|ledger| ledger.bytes_today(now, client.address));
        let of_all = policy.bytes_per_day.map(|most| most.count().saturating_sub(all));
        let of_own = rule.bytes_per_client_per_day.map(|most| most.count().saturating_sub(own));
        ClientAllowance {
            rate_bps: rule.rate.map(|rate| rate.bits_per_sec()),
            time: rule.time,
            streams: rule.streams,
            bytes: of_all.into_iter().chain(of_own).min(),
        }
    }

    /// Longest time of a client.
    pub(crate) fn time_of(&self, client: &PolicyClient) -> Option<Duration> {
        self.policy()?.rule_of(client.address, client.token.as_ref(), wall_time())?.time
    }

    /// The token of the policy that a client of this program's own protocol proved to have.
    pub(crate) fn token_behind(&self, challenge: Nonce, proof: &Proof) -> Option<TokenDigest> {
        let policy = self.policy()?;
        let valid =
            policy.tokens.iter().filter(|row| row.expires.is_none_or(|end| wall_time() < end));
        proof.matching_digest(challenge, valid.map(|row| row.sha256))
    }

    /// Shortest of all rules: for tests whose client is not known before.
    pub(crate) fn time_min(&self) -> Option<Duration> {
        self.policy()?.rules.iter().filter_map(|rule| rule.time).min()
    }
}

#[cfg(test)]
#[path = "policy_guard_tests.rs"]
mod tests;
