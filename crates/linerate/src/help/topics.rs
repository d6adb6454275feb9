//! What `linerate help TOPIC` shows beside the commands: the files that a user writes and the
//! metrics of results, as the manual has them, since an installed program has no manual beside it.

/// Topics with their pages.
const TOPICS: [(&str, &str); 6] = [
    ("config", include_str!("../../../../docs/manual/config.md")),
    ("mesh-plan", include_str!("../../../../docs/manual/mesh.md")),
    ("metrics", include_str!("../../../../spec/metrics.md")),
    ("path-model", include_str!("../../../../docs/manual/path-simulate.md")),
    ("schedule-plan", include_str!("../../../../docs/manual/schedule.md")),
    ("study-plan", include_str!("../../../../docs/studies.md")),
];

/// Page of the manual for `linerate help TOPIC`.
pub(crate) fn topic_page(words: &[std::ffi::OsString]) -> Option<&'static str> {
    let [_, help, name] = words else { return None };
    if help != "help" {
        return None;
    }
    TOPICS.iter().find(|(topic, _)| name == topic).map(|(_, page)| *page)
}

/// The topics in one line.
pub(super) fn topic_names() -> String {
    TOPICS.map(|(topic, _)| topic).join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_errors_point_to_are_there() {
        let of = |line: &str| topic_page(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        for name in ["config", "mesh-plan", "metrics", "schedule-plan", "study-plan"] {
            let page = of(&format!("linerate help {name}"));
            assert!(page.is_some_and(|page| page.starts_with("# ")), "{name}");
        }
        assert_eq!(of("linerate help tcp"), None, "a command has its own help");
        assert_eq!(of("linerate config"), None);
    }
}
