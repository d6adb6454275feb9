//! Addresses and groups of a template as agents and who of them meets whom.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Map, Value};

use super::text::{self, ImportedAgent, ImportedMembers, name};
use super::{Lookup, Notes, is_true, object};
use crate::record::IpFamily;

/// The hosts of a template, as far as they are used.
pub(super) struct Hosts<'a> {
    template: &'a Map<String, Value>,
    lookup: Lookup<'a>,
    pub(super) agents: Vec<ImportedAgent>,
    /// Keys of the addresses that each agent is.
    keys: Vec<BTreeSet<String>>,
}

/// An address that a group names: its key, and the label of one of its addresses.
struct SelectedAddress {
    key: String,
    label: Option<String>,
}

impl<'a> Hosts<'a> {
    pub(super) fn from_template(template: &'a Map<String, Value>, lookup: Lookup<'a>) -> Self {
        Self { template, lookup, agents: Vec::new(), keys: Vec::new() }
    }

    /// Names the addresses that no task uses.
    pub(super) fn unused(&self, notes: &mut Notes) {
        for (key, _) in object(self.template, "addresses") {
            if !self.keys.iter().any(|keys| keys.contains(key)) {
                notes.add_note(&format!("addresses.{key}"), "left out: no task of the plan has it");
            }
        }
    }

    /// Who of a group meets whom.
    /// # Errors
    /// Why nobody does.
    pub(super) fn group_members(
        &mut self,
        key: &str,
        group: &Value,
        family: Option<IpFamily>,
        notes: &mut Notes,
    ) -> Result<ImportedMembers, String> {
        let place = format!("groups.{key}");
        let kind = group.get("type").and_then(Value::as_str).unwrap_or_default();
        let mut list =
            |of: &str, notes: &mut Notes| self.list_agents(&place, group, of, family, notes);
        let (from, to) = match kind {
            "mesh" => (list("addresses", notes), None),
            "disjoint" => (list("a-addresses", notes), Some(list("b-addresses", notes))),
            "list" => return Err("its group is a list, and a run has two agents".to_owned()),
            other => return Err(format!("its group is of type {other:?}")),
        };
        let count = from.len() + to.as_ref().map_or(0, Vec::len);
        if count < 2 || from.is_empty() || to.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("its group {key:?} has no two hosts left"));
        }
        let except = self.excepted(&place, group, &from, to.as_ref(), family, notes);
        for (key, value) in group.as_object().into_iter().flatten() {
            let known = ["type", "addresses", "a-addresses", "b-addresses", "excludes", "_meta"];
            let known = known.contains(&key.as_str())
                || ["excludes-self", "default-address-label", "unidirectional"]
                    .contains(&key.as_str());
            if !known {
                notes.add_note(&place, &format!("{key} {value}: has no counterpart"));
            }
        }
        Ok(ImportedMembers {
            from,
            to,
            except,
            one_way: kind == "disjoint" && is_true(group, "unidirectional"),
        })
    }

    /// The agents that a list of a group names.
    fn list_agents(
        &mut self,
        place: &str,
        group: &Value,
        of: &str,
        family: Option<IpFamily>,
        notes: &mut Notes,
    ) -> Vec<usize> {
        let mut agents = Vec::new();
        for selector in group.get(of).and_then(Value::as_array).into_iter().flatten() {
            for selected in self.selected(&format!("{place}.{of}"), group, selector, notes) {
                let agent = self.find_or_add_agent(&selected, family, notes);
                agents.extend(agent.filter(|agent| !agents.contains(agent)));
            }
        }
        agents
    }

    /// The addresses of a selector: by name, or by a class that goes by a tag.
    fn selected(
        &self,
        place: &str,
        group: &Value,
        selector: &Value,
        notes: &mut Notes,
    ) -> Vec<SelectedAddress> {
        let word = |of: &str| selector.get(of).and_then(Value::as_str);
        if is_true(selector, "disabled") {
            notes.add_note(place, &format!("{selector}: left out: it is disabled"));
            return Vec::new();
        }
        let usual = group.get("default-address-label").and_then(Value::as_str);
        let label = word("label").or(usual).map(str::to_owned);
        if let Some(name) = word("name") {
            return vec![SelectedAddress { key: name.to_owned(), label }];
        }
        let Some(class) = word("class") else {
            notes.add_note(place, &format!("{selector}: left out: it names no address"));
            return Vec::new();
        };
        let found = self.template.get("address-classes").and_then(|classes| classes.get(class));
        let filter = found.and_then(|class| class.get("match-filter"));
        let kind = filter.and_then(|filter| filter.get("type")).and_then(Value::as_str);
        let tag = filter.and_then(|filter| filter.get("tag")).and_then(Value::as_str);
        let source =
            found.and_then(|class| class.pointer("/data-source/type")).and_then(Value::as_str);
        let excludes = found.is_some_and(|class| class.get("exclude-filter").is_some());
        let (Some("tag"), Some(tag), Some("current-config"), false) = (kind, tag, source, excludes)
        else {
            let what = "left out: of classes only those of this template by one tag are followed";
            notes.add_note(place, &format!("class {class:?}: {what}"));
            return Vec::new();
        };
        let tagged = |it: &&Value| {
            let tags = it.get("tags").and_then(Value::as_array);
            tags.into_iter().flatten().any(|value| value.as_str() == Some(tag))
        };
        let all = object(self.template, "addresses").filter(|(_, it)| tagged(it));
        let named = |key: &str| SelectedAddress { key: key.to_owned(), label: label.clone() };
        all.map(|(key, _)| named(key)).collect()
    }

    /// The agent that an address is; none where it cannot be one, which is noted.
    fn find_or_add_agent(
        &mut self,
        selected: &SelectedAddress,
        family: Option<IpFamily>,
        notes: &mut Notes,
    ) -> Option<usize> {
        let SelectedAddress { key, label } = selected;
        let place = format!("addresses.{key}");
        let address = match self.address(key, label.as_deref(), family) {
            Ok(address) => address,
            Err(why) => {
                notes.add_note(&place, &format!("left out: {why}"));
                return None;
            }
        };
        let known = self.agents.iter().position(|agent| agent.address == address);
        if let Some(at) = known {
            if self.keys[at].insert(key.clone()) {
                let is = &self.agents[at].name;
                notes.add_note(&place, &format!("is the agent {is}, which has the same address"));
            }
            return Some(at);
        }
        let wanted = match label {
            Some(label) if self.labelled(key, label).is_some() => name(&format!("{key}-{label}")),
            _ => name(key),
        };
        let known = self.agents.iter().map(|agent| agent.name.as_str());
        let name = text::unused(&wanted, known);
        if name != *key {
            notes.add_note(&place, &format!("{address} is called {name}"));
        }
        self.agents.push(ImportedAgent { name, address, site: self.machine_site(key) });
        self.keys.push(BTreeSet::from([key.clone()]));
        self.beside(&place, key, notes);
        Some(self.agents.len() - 1)
    }

    fn labelled(&self, key: &str, label: &str) -> Option<&'a Value> {
        self.template.get("addresses")?.get(key)?.get("labels")?.get(label)
    }

    /// The number of an address.
    fn address(
        &self,
        key: &str,
        label: Option<&str>,
        family: Option<IpFamily>,
    ) -> Result<IpAddr, String> {
        let found = self.template.get("addresses").and_then(|addresses| addresses.get(key));
        let found = found.ok_or("a group names it, and the template does not have it")?;
        // psConfig has no address in its place: an address without the label is not in the list.
        let labelled = |label| {
            let reason =
                || format!("it has no address with the label {label:?}, which its group asks for");
            self.labelled(key, label).ok_or_else(reason)
        };
        let of = label.map_or(Ok(found), labelled)?;
        let host = found.get("host").and_then(Value::as_str);
        let host = host.and_then(|host| self.template.get("hosts")?.get(host));
        if [Some(found), Some(of), host].into_iter().flatten().any(|part| is_true(part, "disabled"))
        {
            return Err("it is disabled".to_owned());
        }
        let text = of.get("address").and_then(Value::as_str).ok_or("it has no address")?;
        let fits = |address: &IpAddr| match family {
            None => true,
            Some(IpFamily::V4) => address.is_ipv4(),
            Some(IpFamily::V6) => address.is_ipv6(),
        };
        let wanted = match family {
            Some(IpFamily::V4) => "IPv4 ",
            Some(IpFamily::V6) => "IPv6 ",
            None => "",
        };
        let number = text.parse::<IpAddr>().ok().or_else(|| (self.lookup)(text, family));
        number.filter(fits).ok_or_else(|| format!("no {wanted}address is known of {text:?}"))
    }

    /// Addresses of one machine share it: that of the same host, or of the same key with labels.
    fn machine_site(&self, key: &str) -> Option<String> {
        let found = self.template.get("addresses")?.get(key)?;
        let host = found.get("host").and_then(Value::as_str);
        host.or_else(|| found.get("labels").map(|_| key)).map(name)
    }

    fn beside(&self, place: &str, key: &str, notes: &mut Notes) {
        let found = self.template.get("addresses").and_then(|addresses| addresses.get(key));
        for (key, value) in found.and_then(Value::as_object).into_iter().flatten() {
            let what = match key.as_str() {
                "address" | "host" | "labels" | "tags" | "disabled" | "_meta" => continue,
                "no-agent" => "an agent has to run there to be measured",
                "remote-addresses" => "an agent has one address, for all others",
                "pscheduler-address" => "agents connect to their hub only",
                "lead-bind-address" => "an agent connects from the address of its route",
                _ => "has no counterpart",
            };
            notes.add_note(place, &format!("{key} {value}: {what}"));
        }
    }

    /// The pairs that a group leaves out: those that it names, and those of one host unless it says
    /// otherwise.
    fn excepted(
        &self,
        place: &str,
        group: &Value,
        from: &[usize],
        to: Option<&Vec<usize>>,
        family: Option<IpFamily>,
        notes: &mut Notes,
    ) -> BTreeSet<(usize, usize)> {
        let all: BTreeSet<usize> = from.iter().chain(to.into_iter().flatten()).copied().collect();
        let mut except = BTreeSet::new();
        for each in group.get("excludes").and_then(Value::as_array).into_iter().flatten() {
            let mut of = |selector: Option<&Value>| -> Vec<usize> {
                let Some(selector) = selector else { return Vec::new() };
                let selected = self.selected(&format!("{place}.excludes"), group, selector, notes);
                let known = selected.iter().filter_map(|SelectedAddress { key, label }| {
                    let address = self.address(key, label.as_deref(), family).ok()?;
                    self.agents.iter().position(|agent| agent.address == address)
                });
                known.filter(|at| all.contains(at)).collect()
            };
            let local = of(each.get("local-address"));
            let targets = each.get("target-addresses").and_then(Value::as_array);
            let targets: Vec<usize> =
                targets.into_iter().flatten().flat_map(|target| of(Some(target))).collect();
            let pairs = |from: &usize| targets.iter().map(|to| (*from, *to)).collect::<Vec<_>>();
            except.extend(local.iter().flat_map(pairs));
        }
        let by_host = group.get("excludes-self").and_then(Value::as_str).unwrap_or("host");
        if by_host == "host" {
            let site = |at: usize| self.agents[at].site.as_ref();
            for (a, b) in all.iter().flat_map(|a| all.iter().map(|b| (*a, *b))) {
                if a != b && site(a).is_some() && site(a) == site(b) {
                    except.insert((a, b));
                }
            }
        }
        except.retain(|(a, b)| a != b);
        except
    }
}
