//! Who may do what: one question, one answer, and the rule that gave it.

use std::net::IpAddr;
use std::time::Duration;

use super::prefix::is_public;
use super::text::{Policy, Program, Rule, TestKind, TokenDigest};
use crate::time::WallTime;
use crate::units::BitRate;

/// Action that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A test with this host.
    Test {
        /// Kind of the test.
        kind: TestKind,
        /// Protocol of the test.
        program: Program,
        /// Highest rate of one direction, all streams together, bit/s; none: as fast as it goes.
        rate_bps: Option<u64>,
        /// Time that it is planned to send, where that is known.
        time: Option<Duration>,
        /// Streams of both directions.
        streams: usize,
    },
    /// Lists the stored results.
    Results,
    /// A measurement from this host to another.
    MeasureTo(IpAddr),
}

/// Request of a client: its address and token, the time, and the action.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRequest {
    /// Address of the client.
    pub from: IpAddr,
    /// SHA-256 of the token that it shows.
    pub token: Option<TokenDigest>,
    /// Time of the request.
    pub now: WallTime,
    /// The requested action.
    pub act: Act,
}

/// A decision, and the rule that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision<'a> {
    /// The rule that decided; none where no rule has such clients.
    pub rule: Option<&'a Rule>,
    /// Reason of a refusal; none where the action is allowed.
    pub refused: Option<String>,
}

impl Policy {
    /// The first rule that has such a client.
    pub fn rule_of(
        &self,
        from: IpAddr,
        token: Option<&TokenDigest>,
        now: WallTime,
    ) -> Option<&Rule> {
        let shown = token.and_then(|digest| self.token_of(digest, now));
        self.rules.iter().find(|rule| {
            let near = rule.from.is_empty()
                || rule.from.iter().any(|prefix| prefix.contains_address(from));
            near && (rule.token.is_none() || rule.token.as_deref() == shown)
        })
    }

    /// The name of a token that is known and not expired. Every row is compared in whole, so that
    /// the time of the comparison is the same for all.
    fn token_of(&self, shown: &TokenDigest, now: WallTime) -> Option<&str> {
        self.tokens.iter().fold(None, |found, row| {
            let differ = row.sha256.iter().zip(shown).fold(0, |all, (a, b)| all | (a ^ b));
            let valid = row.expires.is_none_or(|end| now < end);
            if differ == 0 && valid { Some(row.name.as_str()) } else { found }
        })
    }

    /// Decides on a client's request; bytes of the day are counted in the [`super::Ledger`].
    pub fn decide(&self, ask: &PolicyRequest) -> PolicyDecision<'_> {
        let Some(rule) = self.rule_of(ask.from, ask.token.as_ref(), ask.now) else {
            let from = ask.from.to_canonical();
            let refused = Some(format!("no rule of this server's policy has clients of {from}"));
            return PolicyDecision { rule: None, refused };
        };
        let refused = rule.refusal(&ask.act).map(|why| format!("rule {:?}: {why}", rule.name));
        PolicyDecision { rule: Some(rule), refused }
    }
}

impl Rule {
    fn refusal(&self, act: &Act) -> Option<String> {
        match *act {
            Act::Test { kind, program, rate_bps, time, streams } => {
                if let Some(refusal) = self.of_kind(kind, program) {
                    return Some(refusal);
                }
                // All at once: a client that learns them one by one asks as many times.
                let exceeded = [
                    self.exceeded_streams(streams),
                    self.exceeded_time(time),
                    self.of_rate(kind, rate_bps),
                ];
                let exceeded: Vec<String> = exceeded.into_iter().flatten().collect();
                (!exceeded.is_empty()).then(|| exceeded.join("; "))
            }
            Act::Results => (!self.results).then(|| "it shows no list of results".to_owned()),
            Act::MeasureTo(target) => self.of_target(target),
        }
    }

    fn of_kind(&self, kind: TestKind, program: Program) -> Option<String> {
        if let Some(tests) = self.tests.as_ref().filter(|tests| !tests.contains(&kind)) {
            let allowed = comma_list(tests.iter().map(|kind| kind.name()));
            return Some(format!("no {} test; allowed: {allowed}", kind.name()));
        }
        let programs = self.programs.as_ref().filter(|all| !all.contains(&program))?;
        let allowed = comma_list(programs.iter().map(|program| program.name()));
        Some(format!("no test by {}; allowed: {allowed}", program.name()))
    }

    fn exceeded_streams(&self, streams: usize) -> Option<String> {
        let most = self.streams.filter(|most| streams > usize::from(*most))?;
        Some(format!("{streams} streams; the limit is {most}"))
    }

    /// A test of which no time is known is ended at the limit.
    fn exceeded_time(&self, time: Option<Duration>) -> Option<String> {
        let longest = self.time.filter(|longest| time.is_some_and(|time| time > *longest))?;
        let (asked, limit) = (time?.as_secs_f64(), longest.as_secs_f64());
        Some(format!("{asked} s of sending; the limit is {limit} s"))
    }

    fn of_rate(&self, kind: TestKind, rate_bps: Option<u64>) -> Option<String> {
        let most = self.rate.filter(|_| kind != TestKind::Trace)?;
        match rate_bps {
            Some(bps) if bps <= most.bits_per_sec() => None,
            Some(bps) => Some(format!("{}; the limit is {most}", BitRate::from_bits_per_sec(bps))),
            None => Some(format!("a test as fast as it goes; the limit is {most}: name a rate")),
        }
    }

    fn of_target(&self, target: IpAddr) -> Option<String> {
        let named = self.measure_to.iter().any(|network| network.applies_to(target));
        if named {
            return None;
        }
        if self.measure_to.is_empty() {
            return Some("it measures to nobody from here".to_owned());
        }
        let targets = comma_list(self.measure_to.iter().map(ToString::to_string));
        let kind = if is_public(target) {
            ""
        } else {
            ", which is no public address and has to be named by a network of such"
        };
        Some(format!("no measurement to {}{kind}; allowed: {targets}", target.to_canonical()))
    }
}

fn comma_list(words: impl Iterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words.map(|word| word.as_ref().to_owned()).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
