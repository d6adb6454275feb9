//! Candidates of `linerate compare --lab`: topologies with what differs of them.

use linerate_core::lab::HostPlan;
use linerate_core::study::Topology;

use super::number;
use crate::command::lab::read_plan;

/// The topology that a candidate names. Takes the keys that are about it.
pub(super) fn topology(
    text: &str,
    file: &str,
    keys: &mut Vec<(&str, &str)>,
) -> Result<Topology, String> {
    let mut lab = read_plan(file).map_err(|failure| failure.to_string())?;
    let mut take = |wanted: &str| {
        let place = keys.iter().position(|(key, _)| *key == wanted)?;
        Some(keys.remove(place).1)
    };
    if let Some(rules) = take("filters") {
        let rules = number("filters", rules)?;
        if lab.routers.is_empty() {
            return Err("it has no router that could have filters".to_owned());
        }
        lab.routers.iter_mut().for_each(|router| router.filters = rules);
    }
    let named = |key: Option<&str>, host: Option<&HostPlan>| {
        key.or_else(|| host.map(|host| &*host.name)).unwrap_or_default().to_owned()
    };
    let client = named(take("client"), lab.hosts.first());
    let server = named(take("server"), lab.hosts.last());
    if client == server {
        return Err(format!("{client:?} is client and server: a topology has two hosts for that"));
    }
    Ok(Topology {
        id: text.to_owned(),
        title: text.to_owned(),
        class: String::new(),
        lab,
        client,
        server,
        l2_hops: 0,
        l3_hops: 0,
        published: None,
    })
}
