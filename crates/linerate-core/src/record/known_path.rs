//! What the user knows of a path and its ends cannot tell.

use serde::{Deserialize, Serialize};

use crate::units::BitRate;

/// The rate that the user gives as the bound of a path, which its ends cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownPath {
    /// The slowest link by name, with the framing of its kind: `1g`, `ds3`, `oc12-atm`.
    #[serde(default)]
    pub link: Option<String>,
    /// Rate of IP packets, headers included, that the path carries.
    #[serde(default)]
    pub capacity_bps: Option<BitRate>,
    /// Place where it was given: `--link`, `--capacity`, or the configuration file.
    pub source: String,
}
