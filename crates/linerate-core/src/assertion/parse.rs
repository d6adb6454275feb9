//! Text to an assertion: words, then the grammar, then whether the units agree. Bounded in length
//! and depth, so that no text takes long or overflows the stack.

use super::{AssertedValue, Compare, Condition, NONE, Name, dimension};
use crate::record::{Direction, METRICS, MetricId, Stat};

/// Longest text of an assertion, in characters.
const CHARS_MAX: usize = 1000;
/// Deepest nesting of brackets in an assertion.
const DEPTH_MAX: usize = 32;

/// Units of numbers: name, dimension, factor to the unit that is stored.
const UNITS: [(&str, &str, f64); 21] = [
    ("frames/s", "frames/s", 1.0),
    ("Gbit/s", "bit/s", 1e9),
    ("Mbit/s", "bit/s", 1e6),
    ("kbit/s", "bit/s", 1e3),
    ("bit/s", "bit/s", 1.0),
    ("Gbps", "bit/s", 1e9),
    ("Mbps", "bit/s", 1e6),
    ("kbps", "bit/s", 1e3),
    ("bps", "bit/s", 1.0),
    ("bytes", "bytes", 1.0),
    ("KiB", "bytes", 1024.0),
    ("MiB", "bytes", 1_048_576.0),
    ("kB", "bytes", 1e3),
    ("MB", "bytes", 1e6),
    ("GB", "bytes", 1e9),
    ("s/GB", "s/GB", 1.0),
    ("ns", "ns", 1.0),
    ("us", "ns", 1e3),
    ("ms", "ns", 1e6),
    ("s", "ns", 1e9),
    ("%", NONE, 0.01),
];

/// Ends of metrics' keys that a name may leave out.
const ENDS: [&str; 7] =
    ["_frames_per_sec", "_s_per_gb", "_per_sec", "_bytes", "_ratio", "_bps", "_ns"];

/// Names that stand for a metric beside its key.
const OTHER_NAMES: [(&str, MetricId); 2] =
    [("loss", MetricId::DatagramLossRatio), ("jitter", MetricId::JitterRfc3550)];

const STATS: [(&str, Stat); 10] = [
    ("value", Stat::Value),
    ("min", Stat::Min),
    ("mean", Stat::Mean),
    ("max", Stat::Max),
    ("stddev", Stat::Stddev),
    ("p50", Stat::P50),
    ("p90", Stat::P90),
    ("p95", Stat::P95),
    ("p99", Stat::P99),
    ("p999", Stat::P999),
];

/// A piece with its dimension; `None` is a truth and no quantity.
type Typed = (Condition, Option<&'static str>);

/// Reads the whole text.
pub(super) fn parse(text: &str) -> Result<Condition, String> {
    if text.chars().count() > CHARS_MAX {
        return Err(format!("an assertion has at most {CHARS_MAX} characters"));
    }
    let mut parser = Parser { rest: text.trim(), depth: 0 };
    let (node, dimension) = parser.parse_any()?;
    if !parser.rest.is_empty() {
        return Err(format!("what is {:?} for? it stands behind a whole assertion", parser.rest));
    }
    match dimension {
        None => Ok(node),
        Some(_) => {
            Err(format!("{:?} compares nothing; write, for example, {EXAMPLE}", text.trim()))
        }
    }
}

const EXAMPLE: &str = "'goodput >= 0.9 * ceiling'";

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn parse_any(&mut self) -> Result<Typed, String> {
        self.joined("or", Self::parse_all, Condition::Any)
    }

    fn parse_all(&mut self) -> Result<Typed, String> {
        self.joined("and", Self::parse_comparison, Condition::All)
    }

    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Typed, String>,
        make: fn(Vec<Condition>) -> Condition,
    ) -> Result<Typed, String> {
        let (first, kind) = part(self)?;
        let mut nodes = vec![first];
        while self.take_word(word) {
            let (next, next_kind) = part(self)?;
            if kind.is_some() || next_kind.is_some() {
                return Err(format!("{word} joins comparisons; one side of it is a quantity"));
            }
            nodes.push(next);
        }
        let only = nodes.len() == 1;
        Ok((if only { nodes.remove(0) } else { make(nodes) }, kind))
    }

    fn parse_comparison(&mut self) -> Result<Typed, String> {
        let (left, left_kind) = self.sum()?;
        let found = Compare::ALL.into_iter().find(|(sign, _)| self.accept_sign(sign));
        let Some((sign, compare)) = found else {
            if self.rest.starts_with('=') {
                return Err("= compares nothing; write ==".to_owned());
            }
            return Ok((left, left_kind));
        };
        let (right, right_kind) = self.sum()?;
        common_dimension(sign, left_kind, right_kind)?;
        Ok((Condition::Compared(Box::new(left), compare, Box::new(right)), None))
    }

    fn sum(&mut self) -> Result<Typed, String> {
        let (mut left, mut kind) = self.parse_product()?;
        while let Some(sign) = ["+", "-"].into_iter().find(|sign| self.accept_sign(sign)) {
            let (right, right_kind) = self.parse_product()?;
            kind = Some(common_dimension(sign, kind, right_kind)?);
            left = Condition::Sum(Box::new(left), first_char(sign), Box::new(right));
        }
        Ok((left, kind))
    }

    fn parse_product(&mut self) -> Result<Typed, String> {
        let (mut left, mut kind) = self.parse_factor()?;
        while let Some(sign) = ["*", "/"].into_iter().find(|sign| self.accept_sign(sign)) {
            let (right, right_kind) = self.parse_factor()?;
            kind = Some(product(sign, kind, right_kind)?);
            left = Condition::Sum(Box::new(left), first_char(sign), Box::new(right));
        }
        Ok((left, kind))
    }

    fn parse_factor(&mut self) -> Result<Typed, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("brackets and signs are nested deeper than {DEPTH_MAX}"));
        }
        let part = self.part_within();
        self.depth -= 1;
        part
    }

    fn part_within(&mut self) -> Result<Typed, String> {
        if self.accept_sign("(") {
            let inner = self.parse_any()?;
            return if self.accept_sign(")") {
                Ok(inner)
            } else {
                Err("a ) is missing".to_owned())
            };
        }
        if self.accept_sign("-") {
            let (node, kind) = self.parse_factor()?;
            let kind = quantity("-", kind)?;
            return Ok((Condition::Negated(Box::new(node)), Some(kind)));
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        self.name()
    }

    fn number(&mut self) -> Result<Typed, String> {
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
        let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let (mantissa, after) = self.rest.split_at(end);
        // 1e-3: an exponent has digits behind it, or it is a unit.
        let exponent = after.strip_prefix(['e', 'E']).map(|text| {
            let digits = text.trim_start_matches(['-', '+']);
            let signs = text.len() - digits.len();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if end == 0 || signs > 1 { 0 } else { 1 + signs + end }
        });
        let (text, rest) = self.rest.split_at(mantissa.len() + exponent.unwrap_or(0));
        let value: f64 = text
            .replace('_', "")
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .ok_or_else(|| format!("{text:?} is not a number"))?;
        self.rest = rest.trim_start();
        let ends_here = |text: &str| {
            let after = self.rest.strip_prefix(text);
            after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
        };
        let mut units = UNITS.iter().filter(|(unit, ..)| ends_here(unit));
        let longest = units.by_ref().max_by_key(|(unit, ..)| unit.len());
        let Some((unit, dimension, factor)) = longest else {
            let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
            return match &self.rest[..end] {
                "" | "and" | "or" => Ok((Condition::Number(value), Some(NONE))),
                strange => {
                    let known: Vec<&str> = UNITS.iter().map(|(unit, ..)| *unit).collect();
                    Err(format!("{strange:?} is not a unit; there are {}", known.join(", ")))
                }
            };
        };
        self.accept_sign(unit);
        Ok((Condition::Number(value * factor), Some(dimension)))
    }

    fn name(&mut self) -> Result<Typed, String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c: char| !is_part(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        if text.is_empty() {
            return Err(match self.rest.chars().next() {
                Some(strange) => format!("what is {strange:?} for? a name or a number goes there"),
                None => format!("it ends too early; write, for example, {EXAMPLE}"),
            });
        }
        self.rest = rest.trim_start();
        let mut words = text.split('.');
        let (what, unit) = quantity_of(words.next().unwrap_or_default())?;
        let mut name = Name { what, direction: None, stat: None, text: text.to_owned() };
        for word in words {
            let stat = STATS.iter().find(|(known, _)| *known == word);
            match (word, stat) {
                ("up", _) => name.direction = Some(Direction::Up),
                ("down", _) => name.direction = Some(Direction::Down),
                (_, Some((_, stat))) => name.stat = Some(*stat),
                _ => {
                    let known: Vec<&str> = STATS.iter().map(|(known, _)| *known).collect();
                    let known = known.join(", ");
                    return Err(format!("{text}: {word:?} is none of up, down, {known}"));
                }
            }
        }
        Ok((Condition::Name(name), Some(unit)))
    }

    /// Takes a sign, and the space behind it.
    fn accept_sign(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        self.rest = rest.trim_start();
        true
    }

    /// Takes a word and the space behind it, where no letter follows.
    fn take_word(&mut self, word: &str) -> bool {
        let after = self.rest.strip_prefix(word);
        let is_whole = |after: &&str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let Some(rest) = after.filter(is_whole) else { return false };
        self.rest = rest.trim_start();
        true
    }
}

fn first_char(sign: &str) -> char {
    sign.chars().next().unwrap_or(' ')
}

/// Quantity that a name stands for, with its dimension.
fn quantity_of(name: &str) -> Result<(AssertedValue, &'static str), String> {
    if name == "ceiling" {
        return Ok((AssertedValue::Ceiling, "bit/s"));
    }
    let short =
        |key: &'static str| ENDS.iter().find_map(|end| key.strip_suffix(end)).unwrap_or(key);
    let is_it = |key: &'static str| key == name || short(key) == name;
    let mut found: Vec<MetricId> =
        METRICS.iter().map(|row| row.id).filter(|id| is_it(id.key())).collect();
    found.extend(OTHER_NAMES.iter().filter(|(other, _)| *other == name).map(|(_, id)| *id));
    let Some(metric) = found.first() else {
        let known = || METRICS.iter().map(|row| short(row.id.key())).chain(["ceiling"]);
        let mut near = crate::similar_names(name, known());
        if near.is_empty() {
            near = known().filter(|key| key.contains(name) || name.contains(key)).take(4).collect();
        }
        let hint = match near.as_slice() {
            [] => "linerate help metrics lists them".to_owned(),
            near => format!("near it: {}", near.join(", ")),
        };
        return Err(format!("{name:?} is not a metric; {hint}"));
    };
    let unit = dimension(metric.table_row().unit);
    Ok((AssertedValue::Metric(found), unit))
}

/// The dimension of a quantity.
fn quantity(sign: &str, kind: Option<&'static str>) -> Result<&'static str, String> {
    kind.ok_or_else(|| format!("{sign} has a comparison beside it; it needs quantities"))
}

/// The dimension that both have.
fn common_dimension(
    sign: &str,
    left: Option<&'static str>,
    right: Option<&'static str>,
) -> Result<&'static str, String> {
    let (left, right) = (quantity(sign, left)?, quantity(sign, right)?);
    if left == right {
        return Ok(left);
    }
    let spoken = |kind| match kind {
        NONE => "a bare number".to_owned(),
        "ns" => "a time".to_owned(),
        unit => format!("a quantity in {unit}"),
    };
    let unit = if left == NONE { right } else { left };
    let unit = if unit == "ns" { "ms" } else { unit };
    Err(format!(
        "{sign} has {} on its left and {} on its right; give numbers their unit, such as 10 {unit}",
        spoken(left),
        spoken(right)
    ))
}

/// The dimension of a product or a quotient.
fn product(
    sign: &str,
    left: Option<&'static str>,
    right: Option<&'static str>,
) -> Result<&'static str, String> {
    match (quantity(sign, left)?, sign, quantity(sign, right)?) {
        (left, _, NONE) => Ok(left),
        (NONE, "*", right) => Ok(right),
        (left, "/", right) if left == right => Ok(NONE),
        (left, _, right) => Err(format!("{left} {sign} {right} is a unit that nothing has here")),
    }
}
