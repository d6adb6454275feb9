//! The policy in force, and what clients moved of their bytes of the day.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use linerate_core::policy::{Act, Ask, Ledger, Policy, Program, TokenDigest};
use linerate_engine::flow::moved;
use linerate_engine::flow::tcp::Demand;
use linerate_proto::native::{Nonce, Proof, Refuse, RefuseCode};
use linerate_sys::clock::wall;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// By which protocol.
    pub program: Program,
    /// From where.
    pub address: IpAddr,
    /// SHA-256 of the token that it shows.
    pub token: Option<TokenDigest>,
}

impl Client {
    /// A client that shows no token.
    pub const fn of(program: Program, address: IpAddr) -> Self {
        Self { program, address, token: None }
    }
}

/// What a client may still do.
#[cfg(feature = "web")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) rate_bps: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) streams: Option<u16>,
    /// Of today's bytes.
    pub(crate) bytes: Option<u64>,
}

/// Asks the policy, where there is one.
#[derive(Debug, Default)]
pub(crate) struct PolicyGuard {
    policy: RwLock<Option<Arc<Policy>>>,
    ledger: Mutex<Ledger>,
}

impl PolicyGuard {
    pub(crate) fn set(&self, policy: Policy) {
        moved::count();
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(policy));
    }

    pub(crate) fn policy(&self) -> Option<Arc<Policy>> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts bytes that no stream of the engine counts.
    pub(crate) fn charge(&self, client: IpAddr, bytes: u64) {
        if self.policy().is_some() {
            self.with_ledger(|ledger| ledger.charge(wall(), client, bytes));
        }
    }

    /// Counts to a client the bytes of a measurement from this host, whose streams the engine has
    /// counted already.
    #[cfg(feature = "web")]
    pub(crate) fn attribute(&self, client: IpAddr, bytes: u64) {
        if self.policy().is_some() {
            self.with_ledger(|ledger| ledger.attribute(wall(), client, bytes));
        }
    }

    /// Networks that this host may measure to for a client.
    #[cfg(feature = "web")]
    pub(crate) fn targets(&self, client: &Client) -> Vec<String> {
        let Some(policy) = self.policy() else { return Vec::new() };
        let rule = policy.rule_of(client.address, client.token.as_ref(), wall());
        rule.map(|rule| rule.measure_to.iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    fn with_ledger<T>(&self, work: impl FnOnce(&mut Ledger) -> T) -> T {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for (client, bytes) in moved::take() {
            ledger.charge(wall(), client, bytes);
        }
        work(&mut ledger)
    }

    /// Whether a client may have such a test.
    pub(crate) fn check(&self, demand: &Demand, client: &Client) -> Result<(), Refuse> {
        let Some(policy) = self.policy() else { return Ok(()) };
        let Demand { streams, planned, kind, rate_bps } = *demand;
        let Client { program, address, token } = *client;
        let act = Act::Test { kind, program, rate_bps, time: planned, streams };
        let decision = policy.decide(&Ask { from: address, token, now: wall(), act });
        let refuse = |reason| Refuse { code: RefuseCode::Policy, reason, retry_after_ms: None };
        if let Some(reason) = decision.refused {
            return Err(refuse(reason));
        }
        let Some(rule) = decision.rule else { return Ok(()) };
        let spent = self.with_ledger(|ledger| ledger.spent(&policy, rule, wall(), address));
        spent.map_or(Ok(()), |spent| Err(refuse(spent.say)))
    }

    /// Whether a client that shows no token is one of some rule: who is not gets no answer over
    /// UDP.
    pub(crate) fn knows(&self, client: IpAddr) -> bool {
        let Some(policy) = self.policy() else { return true };
        policy.rule_of(client.to_canonical(), None, wall()).is_some()
    }

    /// Whether a client may do something else.
    #[cfg(feature = "web")]
    pub(crate) fn allows(&self, act: Act, client: &Client) -> Option<Result<(), String>> {
        let policy = self.policy()?;
        let Client { address, token, .. } = *client;
        let decision = policy.decide(&Ask { from: address, token, now: wall(), act });
        Some(decision.refused.map_or(Ok(()), Err))
    }

    /// What a client may do by its rule, and what is left of today's bytes.
    #[cfg(feature = "web")]
    pub(crate) fn allowance(&self, client: &Client) -> Allowance {
        let Some(policy) = self.policy() else { return Allowance::default() };
        let now = wall();
        let rule = policy.rule_of(client.address, client.token.as_ref(), now);
        let Some(rule) = rule else { return Allowance::default() };
        let (all, own) = self.with_ledger(|ledger| ledger.today(now, client.address));
        let of_all = policy.bytes_per_day.map(|most| most.count().saturating_sub(all));
        let of_own = rule.bytes_per_client_per_day.map(|most| most.count().saturating_sub(own));
        Allowance {
            rate_bps: rule.rate.map(|rate| rate.bits_per_sec()),
            time: rule.time,
            streams: rule.streams,
            bytes: of_all.into_iter().chain(of_own).min(),
        }
    }

    /// Longest time of a client.
    pub(crate) fn time_of(&self, client: &Client) -> Option<Duration> {
        self.policy()?.rule_of(client.address, client.token.as_ref(), wall())?.time
    }

    /// The token of the policy that a client of this program's own protocol proved to have.
    pub(crate) fn token_behind(&self, challenge: Nonce, proof: &Proof) -> Option<TokenDigest> {
        let policy = self.policy()?;
        let valid = policy.tokens.iter().filter(|row| row.expires.is_none_or(|end| wall() < end));
        proof.known(challenge, valid.map(|row| row.sha256))
    }

    /// Shortest of all rules: for tests whose client is not known before.
    pub(crate) fn time_min(&self) -> Option<Duration> {
        self.policy()?.rules.iter().filter_map(|rule| rule.time).min()
    }
}
