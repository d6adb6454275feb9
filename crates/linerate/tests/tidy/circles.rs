//! Circles of files: files of one crate that import each other in a loop, so that none of them can
//! be read, tested or moved without the others. Imports are read from the tokens: `use` trees, and
//! paths in the code that begin at the crate, the module or an imported module. A `pub use` hands a
//! name on and is followed to where the name is defined; it is no import of its own. What a module
//! takes from those below it is none either: they are its parts. Left out: what methods of a value
//! bring in without naming its type, names that macros make, and tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, words};

/// Names that a path passes through: `crate::a::B` is three.
type Path = Vec<String>;

/// A file as a module of its crate.
struct Module {
    file: String,
    /// What `use` binds here, and what it stands for; handed on or not.
    bound: BTreeMap<String, Path>,
    /// Modules of which every name is bound here.
    globs: Vec<Path>,
    /// Paths that the code itself imports or names.
    named: Vec<Path>,
    /// Items defined here.
    defined: BTreeSet<String>,
}

/// The modules of a crate by their path, the root's being empty.
struct Modules(BTreeMap<Path, Module>);

/// The circles of the crate whose sources lie under `folder` (`crates/a/src/`), by their files.
pub(crate) fn circles(folder: &str, sources: &[Source]) -> Vec<Vec<String>> {
    let modules = sources
        .iter()
        .filter_map(|source| Some((place(source.path.strip_prefix(folder)?), read(source))));
    let modules = Modules(modules.collect());
    let arrows = modules.arrows();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (*file, reached(file, &arrows))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (file, forth) in &reach {
        let back = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(file));
        let circle: Vec<String> = forth.iter().filter(back).map(|it| (*it).to_owned()).collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles
}

/// Every file that imports lead to from `file`.
fn reached<'a>(file: &str, arrows: &BTreeMap<&str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = arrows.get(file).into_iter().flatten().copied().collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(arrows.get(next).into_iter().flatten());
        }
    }
    reached
}

/// `a/b/mod.rs` and `a/b.rs` are `a::b`; `lib.rs` and `main.rs` are the root.
fn place(file: &str) -> Path {
    let stem = file.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    let is_root = matches!(stem, "lib" | "main");
    stem.split('/').filter(|_| !is_root).map(str::to_owned).collect()
}

impl Modules {
    fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let targets = |here: &Path, module: &Module| {
            let named = module.named.iter().filter_map(|path| self.place_of(here, path, 0));
            let others = named.filter(|place| !place.starts_with(here));
            others.map(|place| &*self.0[&place].file).collect()
        };
        self.0.iter().map(|(here, module)| (&*module.file, targets(here, module))).collect()
    }

    /// The module that defines what `path` names when it stands in the module at `place`; nothing
    /// when that is another crate's, or a module as such. `depth`: names handed on so far.
    fn place_of(&self, place: &Path, path: &[String], depth: u32) -> Option<Path> {
        let (mut here, mut names) = self.start(place, path)?;
        while let Some((name, rest)) = names.split_first() {
            let child: Path = here.iter().chain([name]).cloned().collect();
            if !self.0.contains_key(&child) {
                break;
            }
            (here, names) = (child, rest);
        }
        let (name, rest) = names.split_first()?;
        let module = self.0.get(&here)?;
        if module.defined.contains(name) || depth > 8 {
            return Some(here);
        }
        if let Some(stands_for) = module.bound.get(name) {
            let whole: Path = stands_for.iter().chain(rest).cloned().collect();
            return self.place_of(&here, &whole, depth + 1);
        }
        let through = |glob: &Path| {
            let whole: Path = glob.iter().chain([name]).cloned().collect();
            self.place_of(&here, &whole, depth + 1)
        };
        // A name that nothing here defines, say a macro's: asked for by this path, or no find.
        module.globs.iter().find_map(through).or_else(|| (depth == 0).then_some(here))
    }

    /// The module at which a path starts, and the names after that.
    fn start<'p>(&self, place: &Path, path: &'p [String]) -> Option<(Path, &'p [String])> {
        let (first, rest) = path.split_first()?;
        let child: Path = place.iter().chain([first]).cloned().collect();
        match first.as_str() {
            "crate" => Some((Path::new(), rest)),
            "self" => Some((place.clone(), rest)),
            "super" => {
                let up = rest.iter().take_while(|name| *name == "super").count();
                let parent = place.len().checked_sub(up + 1)?;
                Some((place[..parent].to_vec(), &rest[up..]))
            }
            _ if self.0.contains_key(&child) => Some((place.clone(), path)),
            first => {
                let stands_for = self.0.get(place)?.bound.get(first)?;
                let is_inside = matches!(stands_for[0].as_str(), "crate" | "self" | "super");
                let (mut at, inner) = is_inside.then(|| self.start(place, stands_for))??;
                at.extend(inner.iter().cloned());
                self.0.contains_key(&at).then_some((at, rest))
            }
        }
    }
}

/// The words and signs of the product lines; of signs, those that paths are made of.
fn tokens(source: &Source) -> Vec<&str> {
    let mut tokens = Vec::new();
    for (_, line) in source.product_lines() {
        let mut rest = line;
        while let Some((at, word)) = words(rest).next() {
            let start = rest.char_indices().nth(at).map_or(rest.len(), |(byte, _)| byte);
            signs(&rest[..start], &mut tokens);
            tokens.push(word);
            rest = &rest[start + word.len()..];
        }
        signs(rest, &mut tokens);
    }
    tokens
}

fn signs<'a>(text: &'a str, tokens: &mut Vec<&'a str>) {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = if rest.starts_with("::") { 2 } else { 1 };
        let sign = rest.get(..length).unwrap_or(" ");
        if !sign.trim().is_empty() {
            tokens.push(sign);
        }
        at += rest.get(..length).map_or(rest.len(), str::len);
    }
}

fn read(source: &Source) -> Module {
    let tokens = tokens(source);
    let mut module = Module {
        file: source.path.clone(),
        bound: BTreeMap::new(),
        globs: Vec::new(),
        named: Vec::new(),
        defined: BTreeSet::new(),
    };
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", |before| tokens[before]);
        match tokens[at] {
            // `impl Trait + use<'a>` is no import.
            "use" if tokens.get(at + 1) != Some(&"<") => {
                let is_handed_on = matches!(before, "pub" | ")");
                at = tree(&tokens, at + 1, &[], is_handed_on, &mut module);
            }
            "struct" | "enum" | "fn" | "const" | "static" | "trait" | "type" | "union" | "mod"
            | "macro_rules" => {
                let names = tokens[at + 1..].iter().filter(|token| !matches!(**token, "!" | "mut"));
                module.defined.extend(names.take(1).map(|name| (*name).to_owned()));
                at += 1;
            }
            first if is_name(first) && before != "::" && tokens.get(at + 1) == Some(&"::") => {
                let path = path(&tokens[at..]);
                at += 2 * path.len() - 1;
                module.named.push(path);
            }
            _ => at += 1,
        }
    }
    module
}

/// The names that a path begins with.
fn path(tokens: &[&str]) -> Path {
    let pairs = tokens.chunks(2).take_while(|pair| is_name(pair[0]));
    let mut path = Path::new();
    for pair in pairs {
        path.push(pair[0].to_owned());
        if pair.get(1) != Some(&"::") {
            break;
        }
    }
    path
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads the branches of a `use` from `at` and returns the place after them.
fn tree(tokens: &[&str], at: usize, stem: &[String], handed: bool, module: &mut Module) -> usize {
    let mut path = stem.to_vec();
    let mut at = at;
    let mut name = None;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match *token {
            "{" => {
                while !matches!(tokens.get(at), None | Some(&"}" | &";")) {
                    at = tree(tokens, at, &path, handed, module);
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                return at + 1;
            }
            "*" => {
                module.globs.push(path.clone());
                return at;
            }
            "as" => name = tokens.get(at).map(|name| (*name).to_owned()),
            "self" if !stem.is_empty() => {}
            "::" => {}
            "," | ";" | "}" => {
                at -= 1;
                break;
            }
            token if name.is_none() => path.push(token.to_owned()),
            _ => {}
        }
    }
    if let Some(name) = name.or_else(|| path.last().cloned()) {
        module.bound.insert(name, path.clone());
    }
    if !handed {
        module.named.push(path);
    }
    at
}

fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let sources: Vec<Source> = files
        .iter()
        .map(|(name, text)| Source::new(&format!("crates/a/src/{name}"), text))
        .collect();
    let short = |file: &String| file.trim_start_matches("crates/a/src/").to_owned();
    let circles = circles("crates/a/src/", &sources);
    circles.iter().map(|circle| circle.iter().map(short).collect()).collect()
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\n");
    let forth = ("a.rs", "use crate::b::{self, B, deep::{D as E}};\n");
    let by_use = ("b.rs", "use super::a::{\n    A,\n};\n");
    let by_path = ("b.rs", "fn f() -> crate::a::A { crate::a::new() }\n");
    let one_way = ("b.rs", "fn f() -> std::io::Result<()> { c::g() }\nuse crate::c;\n");
    let tested = ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n");
    assert_eq!(found(&[lib, forth, by_use]), [["a.rs", "b.rs"]]);
    assert_eq!(found(&[lib, forth, by_path]), [["a.rs", "b.rs"]]);
    assert_eq!(found(&[lib, forth, one_way, ("c.rs", "use std::fmt;\n")]).len(), 0);
    assert_eq!(found(&[lib, forth, tested]).len(), 0);
}

#[test]
fn a_name_is_followed_to_where_it_is_defined() {
    let face = ("m/mod.rs", "mod one;\nmod two;\npub use one::One;\npub use two::*;\n");
    let one = ("m/one.rs", "use super::Two;\npub struct One;\n");
    let two = ("m/two.rs", "pub struct Two;\n");
    assert_eq!(found(&[face, one, two]).len(), 0, "the face hands names on");
    let back = ("m/two.rs", "use crate::m;\npub struct Two(m::One);\n");
    assert_eq!(found(&[face, one, back]), [["m/one.rs", "m/two.rs"]]);
    let parent = ("m/mod.rs", "mod one;\nuse one::One;\npub struct Two(One);\n");
    assert_eq!(found(&[parent, one]).len(), 0, "a module is made of those below it");
}
