//! Import circles: parts of one crate that import each other in a loop, so that none of them can
//! be read, tested or moved without the others. At each level of the module tree the parts are the
//! module's own file and its children, a child with all that lies below it: so two files are a
//! circle, and so are two folders (`flow`, `foreign`), and a module with a child that imports from
//! it (`mod`, `client`). Imports are read from the tokens: `use` trees, and paths in the code that
//! begin at the crate, the module or an imported module, those of inline modules too. A `pub use`
//! hands a name on and is followed to where the name is defined; it is no import of its own. Left
//! out: what methods of a value bring in without naming its type, names of macros, and tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, words};

/// Names that a path passes through: `crate::a::B` is three.
type Path = Vec<String>;

/// A file as a module of its crate.
#[derive(Default)]
struct Module {
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

/// The circles of the crate whose sources lie under `folder` (`crates/a/src/`): for each the folder
/// of the module in which its parts lie, and the names of the parts.
pub(crate) fn circles(folder: &str, sources: &[Source]) -> Vec<Circle> {
    let modules = sources
        .iter()
        .filter_map(|source| Some((place(source.path.strip_prefix(folder)?), read(source))));
    let modules = Modules(modules.collect());
    let mut levels: BTreeMap<Path, Arrows> = BTreeMap::new();
    for (from, to) in modules.arrows() {
        let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        let level = levels.entry(from[..shared].to_vec()).or_default();
        let (from, to) = (part(&from, shared), part(&to, shared));
        level.entry(from).or_default().insert(to);
    }
    let mut circles = Vec::new();
    for (level, arrows) in &levels {
        let parts = |parts: BTreeSet<String>| Circle { folder: folder_of(folder, level), parts };
        circles.extend(loops(arrows).into_iter().map(parts));
    }
    circles
}

/// Parts of one module that import each other in a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Circle {
    /// Where the parts lie: `crates/a/src/b`.
    pub(crate) folder: String,
    /// Children by their names, the module's own file as `mod`.
    pub(crate) parts: BTreeSet<String>,
}

impl Circle {
    /// As tidy/circles.txt has it: `crates/a/src/b: mod client`.
    pub(crate) fn line(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        format!("{}: {}", self.folder, parts.join(" "))
    }
}

/// A line of tidy/circles.txt as a circle.
fn listed(line: &str) -> Option<Circle> {
    let (folder, parts) = line.split_once(": ").filter(|_| !line.starts_with('#'))?;
    let parts = parts.split_whitespace().map(str::to_owned).collect();
    Some(Circle { folder: folder.to_owned(), parts })
}

impl Circle {
    /// Whether this is the other circle, or what is left of it.
    fn lies_in(&self, other: &Self) -> bool {
        self.folder == other.folder && self.parts.is_subset(&other.parts)
    }
}

/// Circles that the list does not have, with their parts that it lacks.
pub(crate) fn unlisted(circles: &[Circle], list: &str) -> Vec<String> {
    let listed: Vec<Circle> = list.lines().filter_map(listed).collect();
    let new = circles.iter().filter(|circle| !listed.iter().any(|other| circle.lies_in(other)));
    new.map(|circle| {
        format!(
            "{}: these import each other in a circle that tidy/circles.txt does not have; move \
             what both sides need into a file below them",
            circle.line()
        )
    })
    .collect()
}

/// The list with what is left of its circles; `./dev accept` writes it.
pub(crate) fn shrunk(circles: &[Circle], list: &str) -> String {
    let left = |line: &str| match listed(line) {
        None => format!("{line}\n"),
        Some(known) => circles
            .iter()
            .filter(|circle| circle.lies_in(&known))
            .map(|circle| circle.line() + "\n")
            .collect(),
    };
    list.lines().map(left).collect()
}

/// Parts of a module, and the parts that each imports from.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The part of the module at depth `level` in which a place lies.
fn part(place: &Path, level: usize) -> String {
    place.get(level).map_or_else(|| "mod".to_owned(), Clone::clone)
}

fn folder_of(crate_folder: &str, level: &Path) -> String {
    format!("{crate_folder}{}", level.join("/")).trim_end_matches('/').to_owned()
}

/// The largest sets of parts in which each leads to each.
fn loops(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|part| (part, reached(part, arrows))).collect();
    let mut loops = Vec::new();
    for (part, forth) in &reach {
        let leads_back =
            |other: &&String| reach.get(*other).is_some_and(|back| back.contains(*part));
        let circle: BTreeSet<String> = forth.iter().filter(leads_back).cloned().collect();
        if circle.len() > 1 && !loops.contains(&circle) {
            loops.push(circle);
        }
    }
    loops
}

/// Every part that imports lead to from `start`.
fn reached(start: &str, arrows: &Arrows) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&String> = arrows.get(start).into_iter().flatten().collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next.clone()) {
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
    /// Every import: the importing module, and the one that defines what it takes.
    fn arrows(&self) -> BTreeSet<(Path, Path)> {
        let mut arrows = BTreeSet::new();
        for (here, module) in &self.0 {
            let named = module.named.iter().filter_map(|path| self.place_of(here, path, 0));
            let others = named.filter(|place| place != here);
            arrows.extend(others.map(|place| (here.clone(), place)));
        }
        arrows
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
    let mut module = Module::default();
    // How many braces are open, and at which counts an inline module was opened.
    let (mut open, mut inline) = (0, Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", |before| tokens[before]);
        match tokens[at] {
            // `impl Trait + use<'a>` is no import.
            "use" if tokens.get(at + 1) != Some(&"<") => {
                let is_handed_on = matches!(before, "pub" | ")");
                let mut imports = Module::default();
                at = tree(&tokens, at + 1, &[], is_handed_on, &mut imports);
                module.take_imports(imports, inline.len());
            }
            "struct" | "enum" | "fn" | "const" | "static" | "trait" | "type" | "union" | "mod"
            | "macro_rules" => {
                let names = tokens[at + 1..].iter().filter(|token| !matches!(**token, "!" | "mut"));
                module.defined.extend(names.take(1).map(|name| (*name).to_owned()));
                if tokens[at] == "mod" && tokens.get(at + 2) == Some(&"{") {
                    inline.push(open);
                }
                at += 1;
            }
            first if is_name(first) && before != "::" && tokens.get(at + 1) == Some(&"::") => {
                let path = path(&tokens[at..]);
                at += 2 * path.len() - 1;
                module.named.extend(from_file(path, inline.len()));
            }
            sign => {
                match sign {
                    "{" => open += 1,
                    "}" => open -= 1,
                    _ => {}
                }
                inline.pop_if(|at| sign == "}" && *at == open);
                at += 1;
            }
        }
    }
    module
}

impl Module {
    /// Adds the imports of one `use`, which stands so many inline modules deep.
    fn take_imports(&mut self, imports: Self, depth: usize) {
        self.named.extend(imports.named.into_iter().filter_map(|path| from_file(path, depth)));
        let globs = imports.globs.into_iter().filter_map(|path| from_file(path, depth));
        self.globs.extend(globs.filter(|path| *path != ["self"]));
        for (name, path) in imports.bound {
            self.bound.extend(from_file(path, depth).map(|path| (name, path)));
        }
    }
}

/// A path as the file's own module writes it that stands `depth` inline modules below; nothing when
/// it leads to one of these.
fn from_file(path: Path, depth: usize) -> Option<Path> {
    if depth == 0 {
        return Some(path);
    }
    let ups = path.iter().take_while(|name| *name == "super").count();
    match (path.first()?.as_str(), ups.checked_sub(depth)) {
        ("super", None) | ("self", _) => None,
        ("super", Some(0)) => {
            Some([&["self".to_owned()], &path[ups..]].concat()).filter(|path| path.len() > 1)
        }
        ("super", Some(_)) => Some(path[depth..].to_vec()),
        _ => Some(path),
    }
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

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<Source> = files
        .iter()
        .map(|(name, text)| Source::new(&format!("crates/a/src/{name}"), text))
        .collect();
    let circles = circles("crates/a/src/", &sources);
    circles.iter().map(Circle::line).collect()
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\n");
    let forth = ("a.rs", "use crate::b::{self, B, deep::{D as E}};\n");
    let by_use = ("b.rs", "use super::a::{\n    A,\n};\n");
    let by_path = ("b.rs", "fn f() -> crate::a::A { crate::a::new() }\n");
    let one_way = ("b.rs", "fn f() -> std::io::Result<()> { c::g() }\nuse crate::c;\n");
    let tested = ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n");
    assert_eq!(found(&[lib, forth, by_use]), ["crates/a/src: a b"]);
    assert_eq!(found(&[lib, forth, by_path]), ["crates/a/src: a b"]);
    assert_eq!(found(&[lib, forth, one_way, ("c.rs", "use std::fmt;\n")]).len(), 0);
    assert_eq!(found(&[lib, forth, tested]).len(), 0);
}

#[test]
fn an_inline_module_imports_for_its_file() {
    let forth = ("a.rs", "use crate::b::B;\npub struct A;\n");
    let inline = ("b.rs", "pub struct B;\nmod inner {\n    use super::super::a::A;\n}\n");
    let own = ("b.rs", "pub struct B;\nmod inner {\n    use super::B;\n}\nuse self::inner::C;\n");
    assert_eq!(found(&[forth, inline]), ["crates/a/src: a b"]);
    assert_eq!(found(&[forth, own]).len(), 0);
}

#[test]
fn folders_that_import_each_other_are_a_circle_where_their_files_are_none() {
    let files = [
        ("flow/client.rs", "use crate::foreign::ttcp::T;\n"),
        ("flow/link.rs", "pub struct L;\n"),
        ("foreign/ttcp.rs", "pub struct T;\n"),
        ("foreign/nuttcp.rs", "use crate::flow::link::L;\n"),
    ];
    let faces = [("flow/mod.rs", "mod client;\nmod link;\n"), ("foreign/mod.rs", "mod ttcp;\n")];
    assert_eq!(found(&[&files[..], &faces].concat()), ["crates/a/src: flow foreign"]);
}

#[test]
fn a_name_is_followed_to_where_it_is_defined() {
    let face = ("m/mod.rs", "mod one;\nmod two;\npub use one::One;\npub use two::*;\n");
    let one = ("m/one.rs", "use super::Two;\npub struct One;\n");
    let two = ("m/two.rs", "pub struct Two;\n");
    assert_eq!(found(&[face, one, two]).len(), 0, "the face hands names on");
    let back = ("m/two.rs", "use crate::m;\npub struct Two(m::One);\n");
    assert_eq!(found(&[face, one, back]), ["crates/a/src/m: one two"]);
    let parent = ("m/mod.rs", "mod one;\nuse one::One;\npub struct Two(One);\n");
    assert_eq!(found(&[parent, one]), ["crates/a/src/m: mod one"], "a child imports its parent");
    assert_eq!(found(&[parent, ("m/one.rs", "pub struct One;\n")]).len(), 0);
}

#[test]
fn a_circle_that_is_new_or_grows_is_found_and_the_list_only_shrinks() {
    let circle = |line: &str| listed(line).expect("a line of the list");
    let now = [circle("crates/a/src: b c"), circle("crates/a/src: d e")];
    let list = "# Head: a circle a line\ncrates/a/src: b c d e f\ncrates/a/src/x: y z\n";
    assert_eq!(unlisted(&now, list), Vec::<String>::new());
    assert_eq!(unlisted(&now, "crates/a/src: b c\ncrates/a/src: d f\n").len(), 1);
    assert_eq!(unlisted(&now, "crates/b/src: b c\n").len(), 2);
    assert_eq!(
        shrunk(&now, list),
        "# Head: a circle a line\ncrates/a/src: b c\ncrates/a/src: d e\n"
    );
}
