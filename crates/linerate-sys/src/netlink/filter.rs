//! Filter rules for packets to this host: base chains of nf_tables at the input hook, and the parts
//! of their rules that show if a port is open (linux/netfilter/nf_tables.h), including rules of
//! iptables-nft. Left out: sets, jumps and the rules of legacy iptables.
//!
//! ```text
//! netlink header (16)  nfgenmsg: u8 family  u8 version  u16 resource
//! attributes; their numbers are big-endian
//! ```

use std::io;

use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::socket::{PlainSocket, attributes_of};
use crate::{Error, Result};

/// Subsystem NFNL_SUBSYS_NFTABLES in the upper byte of a message type.
const SUBSYSTEM: u16 = 10 << 8;
const GETCHAIN: u16 = SUBSYSTEM | 4;
const GETRULE: u16 = SUBSYSTEM | 7;
/// Hook NF_INET_LOCAL_IN of linux/netfilter.h.
const LOCAL_IN: u32 = 1;
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;

/// A base chain at the input hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputChain {
    /// Address family: `inet`, `ip` or `ip6`.
    pub family: &'static str,
    /// Name of its table.
    pub table: String,
    /// Name of the chain.
    pub name: String,
    /// True if the chain's policy is to drop.
    pub drops: bool,
    /// Rules in order.
    pub rules: Vec<InputRule>,
}

/// A rule of an input chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputRule {
    /// Names of its expressions: `meta`, `cmp`, `payload`, `lookup`, `counter`, `immediate`, …
    pub expressions: Vec<String>,
    /// Values of its comparisons for equality, in network byte order: a protocol in one byte, a
    /// port in two.
    pub equals: Vec<Vec<u8>>,
    /// Verdict for a matching packet.
    pub verdict: FilterRuleVerdict,
}

/// Verdict of a rule for a matching packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterRuleVerdict {
    /// No verdict: the next rule decides.
    #[default]
    None,
    /// The packet is accepted.
    Accept,
    /// The packet is dropped or rejected.
    Drop,
    /// Another chain or program decides.
    Elsewhere,
}

/// Base chains at the input hook of the calling thread's namespace.
/// # Errors
/// Without CAP_NET_ADMIN.
pub fn input_chains() -> Result<Vec<InputChain>> {
    read().map_err(|source| Error::new("list", "filter rules", source))
}

fn read() -> io::Result<Vec<InputChain>> {
    let mut socket = PlainSocket::open(NETLINK_NETFILTER)?;
    let chains = socket.send_request(GETCHAIN, NLM_F_DUMP, [0; 4], &[])?;
    let mut chains: Vec<InputChain> =
        chains.iter().filter_map(|(header, it)| chain_of(header[0], it)).collect();
    for (header, rule) in socket.send_request(GETRULE, NLM_F_DUMP, [0; 4], &[])? {
        let Some((table, name, rule)) = family_name(header[0]).and_then(|_| rule_of(&rule)) else {
            continue;
        };
        let owner = chains.iter_mut().find(|chain| {
            (Some(chain.family), &chain.table, &chain.name)
                == (family_name(header[0]), &table, &name)
        });
        owner.into_iter().for_each(|owner| owner.rules.push(rule.clone()));
    }
    Ok(chains)
}

/// Name of an address family NFPROTO_* of linux/netfilter.h.
const fn family_name(family: u8) -> Option<&'static str> {
    match family {
        1 => Some("inet"),
        2 => Some("ip"),
        10 => Some("ip6"),
        _ => None,
    }
}

/// Parses a chain; `None` unless it is a filter at the input hook.
fn chain_of(family: u8, attributes: &[u8]) -> Option<InputChain> {
    let mut chain = InputChain { family: family_name(family)?, ..InputChain::default() };
    let (mut hook, mut filters) = (None, true);
    for (kind, value) in attributes_of(attributes) {
        match kind {
            1 => chain.table = attribute_text(value),
            3 => chain.name = attribute_text(value),
            4 => {
                let number_of = attributes_of(value).find(|(kind, _)| *kind == 1);
                hook = number_of.and_then(|(_, bytes)| number(bytes))
            }
            5 => chain.drops = number(value) == Some(NF_DROP),
            7 => filters = attribute_text(value) == "filter",
            _ => {}
        }
    }
    (hook == Some(LOCAL_IN) && filters).then_some(chain)
}

/// Parses a rule, with the names of its table and chain.
fn rule_of(attributes: &[u8]) -> Option<(String, String, InputRule)> {
    let (mut table, mut chain, mut rule) = (None, None, InputRule::default());
    for (kind, value) in attributes_of(attributes) {
        match kind {
            1 => table = Some(attribute_text(value)),
            2 => chain = Some(attribute_text(value)),
            4 => attributes_of(value).for_each(|(_, it)| rule.add(it)),
            _ => {}
        }
    }
    Some((table?, chain?, rule))
}

impl InputRule {
    /// Parses an expression of the rule: its name and its data.
    fn add(&mut self, expression: &[u8]) {
        let find = |bytes, wanted| {
            attributes_of(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
        };
        let name = find(expression, 1).map(attribute_text).unwrap_or_default();
        let data = find(expression, 2).unwrap_or_default();
        match name.as_str() {
            // Operator 0 is "equal".
            "cmp" if find(data, 2).and_then(number) == Some(0) => {
                let value = find(data, 3).and_then(|nested| find(nested, 1));
                self.equals.extend(value.map(<[u8]>::to_vec));
            }
            "immediate" => {
                let verdict = find(data, 2).and_then(|nested| find(nested, 2));
                let verdict = verdict.and_then(|nested| find(nested, 1));
                self.verdict = match verdict.and_then(number) {
                    Some(NF_ACCEPT) => FilterRuleVerdict::Accept,
                    Some(NF_DROP) => FilterRuleVerdict::Drop,
                    Some(_) => FilterRuleVerdict::Elsewhere,
                    None => self.verdict,
                };
            }
            "reject" => self.verdict = FilterRuleVerdict::Drop,
            "queue" => self.verdict = FilterRuleVerdict::Elsewhere,
            _ => {}
        }
        self.expressions.push(name);
    }
}

fn attribute_text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::super::socket::attribute;
    use super::*;

    fn expression(name: &str, data: &[u8]) -> Vec<u8> {
        let name = attribute(1, format!("{name}\0").as_bytes());
        attribute(1, &[name, attribute(2, data)].concat())
    }

    fn compare(value: &[u8]) -> Vec<u8> {
        let value = attribute(3, &attribute(1, value));
        expression("cmp", &[attribute(2, &0u32.to_be_bytes()), value].concat())
    }

    #[test]
    fn a_rule_is_read_as_nft_lays_it_out() {
        // nft --debug=netlink add rule inet f i tcp dport 5210 accept:
        // [ meta load l4proto ] [ cmp eq 0x06 ] [ payload 2b @ transport + 2 ] [ cmp eq 0x145a ]
        // [ immediate accept ]
        let accept = attribute(2, &attribute(2, &attribute(1, &1u32.to_be_bytes())));
        let all = [
            expression("meta", &[]),
            compare(&[6]),
            expression("payload", &[]),
            compare(&[0x14, 0x5a]),
            expression("immediate", &accept),
        ]
        .concat();
        let bytes = [attribute(1, b"f\0"), attribute(2, b"i\0"), attribute(4, &all)].concat();
        let (table, chain, rule) = rule_of(&bytes).expect("a rule");
        assert_eq!((table.as_str(), chain.as_str()), ("f", "i"));
        assert_eq!(rule.equals, [vec![6], 5210u16.to_be_bytes().to_vec()]);
        assert_eq!(rule.verdict, FilterRuleVerdict::Accept);
        assert_eq!(rule.expressions.join(" "), "meta cmp payload cmp immediate");
        for len in 0..bytes.len() {
            assert_ne!(
                rule_of(&bytes[..len]).map(|(_, _, rule)| rule),
                Some(rule.clone()),
                "{len} bytes"
            );
        }
    }

    #[test]
    fn a_chain_counts_at_the_input_hook_only() {
        let chain = |hook: u32| {
            let hook = attribute(4, &attribute(1, &hook.to_be_bytes()));
            let policy = attribute(5, &0u32.to_be_bytes());
            [attribute(1, b"f\0"), attribute(3, b"i\0"), hook, policy].concat()
        };
        let input = chain_of(1, &chain(LOCAL_IN)).expect("an input chain");
        assert_eq!((input.family, input.name.as_str(), input.drops), ("inet", "i", true));
        assert_eq!(chain_of(1, &chain(3)), None);
        assert_eq!(chain_of(7, &chain(LOCAL_IN)), None, "a bridge's");
    }
}
