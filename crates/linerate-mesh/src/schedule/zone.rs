//! Time zones by name, from the host's data base.

use std::path::Path;

use linerate_core::schedule::Zone;

/// Directory of the IANA's time zone database (tzfile(5)).
const PLACE: &str = "/usr/share/zoneinfo";

/// The zone of a name: `UTC`, `Europe/Berlin`.
/// # Errors
/// One line when this host has none of that name.
pub fn load_time_zone(name: &str) -> Result<Zone, String> {
    if name == "UTC" {
        return Ok(Zone::utc());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
    let unknown = |reason: String| {
        format!("zone {name:?}: {reason}; write UTC or a name as Europe/Berlin (package tzdata)")
    };
    if name.is_empty() || name.starts_with('/') || !name.chars().all(plain) {
        return Err(unknown("it is no name of a zone".to_owned()));
    }
    let file = std::fs::read(Path::new(PLACE).join(name));
    let file = file.map_err(|_| unknown(format!("{PLACE} has none of that name")))?;
    Zone::from_tzif(name, &file).map_err(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_name_and_no_way_to_another_file() {
        assert!(load_time_zone("UTC").is_ok());
        for name in ["", "/etc/passwd", "../../etc/passwd", "Nowhere/At_all"] {
            let error = load_time_zone(name).expect_err(name);
            assert!(error.contains("Europe/Berlin") && !error.contains('\n'), "{error}");
        }
    }
}
