//! A topology of a study: the laboratory, who measures to whom, and the published rows beside it.

use serde::{Deserialize, Serialize};

use crate::lab::LabPlan;

/// One topology of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Identifier within the study: `c.1`.
    pub id: String,
    /// Name in tables and legends: `localhost`.
    pub title: String,
    /// `calibration`, `backbone`, `man`: topologies of one class share a plot.
    pub class: String,
    /// The laboratory to build.
    pub lab: LabPlan,
    /// The host that asks for the tests.
    pub client: String,
    /// The host that answers; the same name is measured over its loopback.
    pub server: String,
    /// Switches on the way.
    #[serde(default)]
    pub l2_hops: u32,
    /// Routers on the way.
    #[serde(default)]
    pub l3_hops: u32,
    /// The published rows to put beside this topology's.
    #[serde(default)]
    pub published: Option<PublishedAs>,
}

#[cfg(test)]
impl Topology {
    /// The topology `t` of a laboratory in TOML, for tests of this folder.
    pub(super) fn from_lab(lab: &str, client: &str, server: &str) -> Self {
        Self {
            id: "t".to_owned(),
            title: "t".to_owned(),
            class: "c".to_owned(),
            lab: LabPlan::from_toml(lab, "t.toml").expect("a sound laboratory"),
            client: client.to_owned(),
            server: server.to_owned(),
            l2_hops: 0,
            l3_hops: 0,
            published: None,
        }
    }
}

/// The published rows that belong to a topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishedAs {
    /// Identifier in the published tables: `c.1`.
    pub test: String,
    /// Only rows of this MTU, where the published table varies it.
    #[serde(default)]
    pub mtu_bytes: Option<u32>,
}
