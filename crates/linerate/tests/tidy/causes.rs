//! The table of causes (`linerate-core/src/record/cause.rs`) has no hole: each function, recipe,
//! test and manual row that it names is there, and what it lacks has a reason.

use std::collections::BTreeMap;

use linerate_core::record::{CauseCell, CauseRow};

use crate::coverage::snake;
use crate::tree::Text;

/// Tells whether what a cell names is there.
type IsThere<'a> = &'a dyn Fn(&str) -> bool;

const RULES: &str = "crates/linerate-core/src/explain/";
const BANK: &str = "studies/bank/";
const INNOCENT: &str = "studies/bank/innocent.toml";
const MANUAL: &str = "docs/diagnosis.md";
const CAVEATS: &str = "docs/manual/caveats.md";

/// What the rows of the table may name.
#[derive(Debug, Default)]
pub(crate) struct Tree<'a> {
    /// Files of `explain` by path.
    rules: BTreeMap<&'a str, &'a str>,
    /// Recipes by identifier: their file, and the cause that they plant.
    recipes: BTreeMap<&'a str, Recipe<'a>>,
    manual: &'a str,
    caveats: &'a str,
}

#[derive(Debug)]
struct Recipe<'a> {
    path: &'a str,
    expect: &'a str,
}

impl<'a> Tree<'a> {
    pub(crate) fn read(texts: &'a [Text]) -> Self {
        let mut tree = Self::default();
        for file in texts {
            if file.path.starts_with(RULES) {
                tree.rules.insert(&file.path, &file.text);
            } else if file.path.starts_with(BANK) {
                tree.add_recipes(&file.path, &file.text);
            } else if file.path == MANUAL {
                tree.manual = &file.text;
            } else if file.path == CAVEATS {
                tree.caveats = &file.text;
            }
        }
        tree
    }

    fn add_recipes(&mut self, path: &'a str, text: &'a str) {
        let mut id = "";
        for line in text.lines() {
            let value =
                |key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
            id = value("id").unwrap_or(id);
            if let Some(expect) = value("expect") {
                self.recipes.insert(id, Recipe { path, expect });
            }
        }
    }

    /// Cells of a row that name what is not there, or give no reason.
    pub(crate) fn holes(&self, row: &CauseRow) -> Vec<String> {
        let key = snake(&format!("{:?}", row.cause));
        // A path at its ceiling is what the link's cases are.
        let expect = if key == "link" { "at_ceiling" } else { &key };
        let plants = |name: &str| match self.recipes.get(name) {
            Some(recipe) => recipe.expect == expect,
            None => self.has_test(name),
        };
        let is_innocent = |name: &str| match self.recipes.get(name) {
            Some(recipe) => recipe.path == INNOCENT,
            None => self.has_test(name),
        };
        let has_row =
            |name: &str| self.manual.lines().any(|line| line.starts_with(&format!("| {name} |")));
        let cells: [(&str, CauseCell, IsThere<'_>); 5] = [
            ("rule", row.rule, &|name| self.has_function(name)),
            ("remedy", row.remedy, &|name| self.has_function(name)),
            ("planted case", row.planted, &plants),
            ("innocent twin", row.innocent, &is_innocent),
            ("row in docs/diagnosis.md", row.heading, &has_row),
        ];
        let holes = cells.into_iter().filter_map(|(what, cell, is_there)| match cell {
            CauseCell::Named(name) if is_there(name) => None,
            CauseCell::Lacking(why) if why.contains(' ') => None,
            CauseCell::ByAnother(name, why) if why.contains(' ') && self.tells(name) => None,
            CauseCell::Named(name) => Some(format!("{key}: there is no {what} {name:?}")),
            CauseCell::ByAnother(name, _) => {
                Some(format!("{key}: {name:?} is not there, or say why it tells this instead"))
            }
            CauseCell::Lacking(_) => Some(format!("{key}: say why it has no {what}")),
        });
        holes.collect()
    }

    /// `ends::receive_window`: a function of a file of the rules.
    fn has_function(&self, name: &str) -> bool {
        let Some((file, function)) = name.split_once("::") else { return false };
        let text = self.rules.get(format!("{RULES}{file}.rs").as_str());
        text.is_some_and(|text| text.contains(&format!("fn {function}(")))
    }

    /// `ends::receive_window`, or `caveat::fragmented`: a function of the rules or a heading among
    /// the caveats.
    fn tells(&self, name: &str) -> bool {
        match name.strip_prefix("caveat::") {
            Some(code) => self.caveats.lines().any(|line| line == format!("## `{code}`")),
            None => self.has_function(name),
        }
    }

    fn has_test(&self, name: &str) -> bool {
        self.rules.values().any(|text| text.contains(&format!("fn {name}() {{")))
    }
}

#[test]
fn a_row_that_names_what_is_not_there_is_found() {
    use linerate_core::record::Cause;
    let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let texts = [
        text("crates/linerate-core/src/explain/ends.rs", "pub(super) fn start_up(e: E) {}\n"),
        text("studies/bank/a.toml", "[[recipe]]\nid = \"small\"\nexpect = \"start_up\"\n"),
        text(INNOCENT, "[[recipe]]\nid = \"long\"\nexpect = \"at_ceiling\"\n"),
        text(MANUAL, "| start | signs |\n"),
        text(CAVEATS, "## `fragmented`\n"),
    ];
    let tree = Tree::read(&texts);
    let named = CauseCell::Named;
    let row = CauseRow {
        cause: Cause::StartUp,
        name: "the start",
        rule: named("ends::start_up"),
        remedy: CauseCell::Lacking("nothing helps"),
        planted: named("small"),
        innocent: named("long"),
        heading: named("start"),
    };
    assert_eq!(tree.holes(&row), Vec::<String>::new());
    let by_another = |name| CauseCell::ByAnother(name, "it tells this");
    for name in ["ends::start_up", "caveat::fragmented"] {
        assert!(tree.holes(&CauseRow { rule: by_another(name), ..row }).is_empty(), "{name}");
    }
    let empty = CauseCell::Lacking("");
    for broken in [
        CauseRow { rule: named("ends::start"), ..row },
        CauseRow { rule: by_another("ends::start"), ..row },
        CauseRow { rule: by_another("caveat::cut"), ..row },
        CauseRow { remedy: empty, ..row },
        CauseRow { planted: named("long"), ..row },
        CauseRow { innocent: named("small"), ..row },
        CauseRow { heading: named("stop"), ..row },
    ] {
        assert_eq!(tree.holes(&broken).len(), 1, "{broken:?}");
    }
}
