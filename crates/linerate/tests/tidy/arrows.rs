//! The arrows between crates, from their manifests (ARCHITECTURE, "Picture"):
//! `linerate → server → engine → proto → core`; `engine → sys → core`; `server, linerate → report
//! → core`; `server → mesh → store → outbound → proto, sys`. Whoever may use a crate may use what
//! lies below it on the same path.

/// A crate and the crates of the workspace that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("linerate-core", &[]),
    ("linerate-proto", &["linerate-core"]),
    ("linerate-sys", &["linerate-core"]),
    ("linerate-report", &["linerate-core"]),
    ("linerate-outbound", &["linerate-core", "linerate-proto", "linerate-sys"]),
    ("linerate-store", &["linerate-core", "linerate-sys", "linerate-outbound"]),
    ("linerate-engine", &["linerate-core", "linerate-proto", "linerate-sys"]),
    (
        "linerate-mesh",
        &[
            "linerate-core",
            "linerate-proto",
            "linerate-sys",
            "linerate-outbound",
            "linerate-store",
            "linerate-engine",
            "linerate-report",
        ],
    ),
    (
        "linerate-server",
        &[
            "linerate-core",
            "linerate-proto",
            "linerate-sys",
            "linerate-outbound",
            "linerate-store",
            "linerate-engine",
            "linerate-report",
            "linerate-mesh",
        ],
    ),
    (
        "linerate",
        &[
            "linerate-core",
            "linerate-proto",
            "linerate-sys",
            "linerate-outbound",
            "linerate-store",
            "linerate-engine",
            "linerate-report",
            "linerate-mesh",
            "linerate-server",
        ],
    ),
];

/// Dependencies of one manifest that no arrow allows.
pub(crate) fn check(folder: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
        return vec![format!(
            "crates/{folder}: a crate without arrows; fold it into a crate or give it a row in \
             ARCHITECTURE.md and in tidy/arrows.rs"
        )];
    };
    let manifest: toml::Table = match manifest.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("crates/{folder}/Cargo.toml: {error}")],
    };
    dependencies(&manifest)
        .into_iter()
        .filter(|name| ARROWS.iter().any(|(own, _)| own == name))
        .filter(|name| !allowed.contains(&name.as_str()))
        .map(|name| {
            format!(
                "crates/{folder}/Cargo.toml: no arrow leads from {folder} to {name}; move the code \
                 to the side that may see both"
            )
        })
        .collect()
}

/// Names under every table of dependencies, those for one target included.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if key.ends_with("dependencies") {
            names.extend(table.keys().cloned());
        } else if key == "target" {
            let targets = table.values().filter_map(toml::Value::as_table);
            names.extend(targets.flat_map(dependencies));
        }
    }
    names
}

#[test]
fn an_arrow_that_points_back_is_found() {
    let back = "[dependencies]\nserde = \"1\"\nlinerate-engine.workspace = true\n";
    assert_eq!(check("linerate-report", back).len(), 1);
    assert_eq!(check("linerate-server", back).len(), 0);
    let hidden = "[target.'cfg(unix)'.dev-dependencies]\nlinerate-sys = { path = \"../x\" }\n";
    assert_eq!(check("linerate-proto", hidden).len(), 1);
    assert_eq!(check("linerate-new", "").len(), 1);
    assert_eq!(check("linerate-core", "[dependencies").len(), 1);
}
