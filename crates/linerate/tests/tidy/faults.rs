//! Planted faults (testdata/planted_faults.toml) whose place is gone: bench/planted_faults could
//! not plant them, and nobody would see that no test notices them any more. Whether a test does
//! is tried by that script, not here.

use serde::Deserialize;

use crate::tree::Text;

#[derive(Deserialize)]
struct Faults {
    fault: Vec<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    file: String,
    before: String,
}

/// Faults whose text does not stand in its file, once.
pub(crate) fn misplaced(list: &str, texts: &[Text]) -> Vec<String> {
    let faults: Faults = match toml::from_str(list) {
        Ok(faults) => faults,
        Err(error) => return vec![format!("testdata/planted_faults.toml: {error}")],
    };
    let mut wrong = Vec::new();
    for Fault { file, before } in &faults.fault {
        let text = texts.iter().find(|it| it.path == *file).map_or("", |it| it.text.as_str());
        let count = text.matches(before).count();
        if count != 1 {
            wrong.push(format!(
                "{file}: a planted fault needs {before:?} there once, not {count} times; give it \
                 the new text in testdata/planted_faults.toml"
            ));
        }
    }
    wrong
}

#[test]
fn a_fault_whose_place_is_gone_or_not_the_only_one_is_found() {
    let fault = |before: &str| format!("[[fault]]\nfile = \"a.rs\"\nbefore = '''{before}'''\n");
    let list = ["x >= 1", "x > 1", "y"].map(fault).concat();
    let texts = [Text { path: "a.rs".to_owned(), text: "if x >= 1 { y + y }".to_owned() }];
    let wrong = misplaced(&list, &texts);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("\"x > 1\"") && wrong[1].contains("2 times"), "{wrong:?}");
}
