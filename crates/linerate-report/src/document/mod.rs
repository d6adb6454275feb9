//! What a report says, before it is lines on a terminal, Markdown or a page: one model, built once
//! for each kind of result, and three renderings of it.
//!
//! A document has its parts by name (title, head, limits, sections, notes, sentence), because the
//! renderings put them in another order: a terminal ends with the sentence, a page begins with it.
//! Left out: colours, and where the text goes.

mod html;
mod markdown;
mod table;
mod text;

use linerate_core::record::MetricId;

use crate::headline::{Headline, Quality};
use crate::svg::Svg;

pub use markdown::markdown_cell;
pub use table::{Align, Table};
pub(crate) use table::{Cells, RowKind};

/// A report: what was measured, what came of it, and what has to be known to believe it.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The answer in one line, before all else; none where the sentence says it.
    pub(crate) headline: Option<Headline>,
    /// What was measured, in one line.
    pub(crate) title: String,
    /// When, where, with what: stands under the title.
    pub(crate) head: Vec<Block>,
    /// How the instrument or its host shaped the figures: stands before them.
    pub(crate) limits: Vec<String>,
    /// The figures that a reader takes away; pages alone show them.
    pub(crate) tiles: Vec<Tile>,
    /// The figures.
    pub(crate) sections: Vec<Section>,
    /// What else has to be known.
    pub(crate) notes: Vec<String>,
    /// What stands under the headline where nobody asks for more.
    pub(crate) brief: Vec<Block>,
    /// How it failed or ended early, and why.
    pub(crate) failure: Option<(&'static str, String)>,
    /// The whole in one plain sentence; with a headline it is the same on pages.
    pub(crate) sentence: String,
    /// Metrics whose definitions a page shows.
    pub(crate) metrics: Vec<MetricId>,
    /// The plan as JSON, for pages.
    pub(crate) plan: Option<String>,
    /// Program and record, at the foot of a page.
    pub(crate) foot: String,
}

impl Document {
    /// The heading of what the instrument's hosts did to the numbers: whether that limited a result
    /// is its headline's to say.
    pub(crate) fn heading_of_limits(&self) -> &'static str {
        match &self.headline {
            Some(headline) if !headline.names_this_host() => "This host had a part in it",
            _ => "Limited by this host",
        }
    }

    /// A document of one table without a title, for lists.
    pub fn list(table: Table) -> Self {
        Self::default().with([Block::Table(table)])
    }

    /// The same with a further section without a title.
    pub fn with(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.sections.push(Section::apart("", blocks));
        self
    }

    /// Everything for a terminal of `width` columns without colours, each line ended: tables lose
    /// columns or fold and lines break where they are too long. Without a width nothing but long
    /// remarks is broken.
    pub fn text(&self, width: Option<usize>) -> String {
        self.on(&Screen { width, ..Screen::default() })
    }

    /// As much as a screen is to show, each line ended.
    pub fn on(&self, screen: &Screen) -> String {
        text::render(self, screen)
    }

    /// The same of a record that is not kept: without the identifier, by which nobody finds it.
    pub fn not_kept(mut self) -> Self {
        if let Some(headline) = &mut self.headline {
            headline.id.clear();
        }
        self
    }

    /// Markdown, without figures.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// Every panel of its figures as a file of its own: name and content.
    pub fn svgs(&self) -> Vec<(String, String)> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let panels = blocks.flat_map(|block| match block {
            Block::Figure(figure) => figure.panels.as_slice(),
            _ => &[],
        });
        panels.map(|(name, svg)| (name.clone(), svg.file())).collect()
    }

    /// The sentence as a document of its own, and the rest.
    pub fn apart_from_sentence(self) -> (Self, Self) {
        let sentence = self.sentence.clone();
        let rest = Self { sentence: String::new(), ..self };
        (Self { sentence, ..Self::default() }, rest)
    }

    /// What a reader looks for first: the leading sections, where any says something in words.
    pub fn brief(mut self) -> Self {
        if self.sections.iter().any(|section| section.leads && section.is_told()) {
            self.sections.retain(|section| section.leads);
        }
        self
    }

    /// One HTML file with figures, without scripts and without a request to anywhere.
    pub fn html(&self) -> String {
        html::render(self)
    }
}

/// How a terminal shows a document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen {
    /// Its columns; `None` for files and pipes, whose reader wraps nothing.
    pub width: Option<usize>,
    /// Whether it shows colours.
    pub colour: bool,
    /// How much is wanted.
    pub detail: Detail,
}

/// How much of a document a reader wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The answer alone, in one line that nothing breaks.
    Answer,
    /// The answer and a few facts.
    Brief,
    /// Everything.
    #[default]
    Full,
}

/// A heading with what stands under it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// The heading; may be empty.
    pub title: String,
    /// In order.
    pub blocks: Vec<Block>,
    /// Whether a terminal sets it off by an empty line.
    pub apart: bool,
    /// Whether a page shows it before the others.
    pub leads: bool,
}

impl Section {
    /// A section that a terminal sets off by an empty line.
    pub(crate) fn apart(title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        Self { apart: true, ..Self::close(title, blocks) }
    }

    /// A section that follows at once what is above it.
    pub(crate) fn close(title: impl Into<String>, blocks: impl IntoIterator<Item = Block>) -> Self {
        let blocks = blocks.into_iter().collect();
        Self { title: title.into(), blocks, ..Self::default() }
    }

    /// Tables with remarks under them.
    pub(crate) fn of(
        title: impl Into<String>,
        tables: impl IntoIterator<Item = Table>,
        notes: Vec<String>,
    ) -> Self {
        let blocks = tables.into_iter().map(Block::Table);
        Self::apart(title, blocks.chain([Block::Remarks(notes)]))
    }

    /// The same, before the others on a page.
    pub(crate) fn leading(self) -> Self {
        Self { leads: true, ..self }
    }

    /// Whether it says anything in words or tables: figures are for pages.
    fn is_told(&self) -> bool {
        let is_told = |block: &Block| match block {
            Block::Figure(_) => false,
            Block::Table(table) => table.is_for_terminals(),
            Block::Remarks(lines) | Block::Lines(lines) => !lines.is_empty(),
            Block::Facts(_) | Block::Text(_) | Block::Answers(_) => true,
        };
        self.blocks.iter().any(is_told) || (self.blocks.is_empty() && !self.title.is_empty())
    }

    /// All remarks.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &String> {
        self.blocks.iter().flat_map(|block| match block {
            Block::Remarks(remarks) => remarks.as_slice(),
            _ => &[],
        })
    }
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// Columns under headings.
    Table(Table),
    /// Sentences, each for itself; long ones are broken.
    Remarks(Vec<String>),
    /// Lines in a form that other programs read; only a terminal's width breaks them.
    Lines(Vec<String>),
    /// Labels with their texts, in two columns.
    Facts(Vec<Fact>),
    /// A paragraph at the left edge.
    Text(String),
    /// Questions with their answers.
    Answers(Vec<Answer>),
    /// A drawing, on pages.
    Figure(Figure),
}

/// A label with its text.
#[derive(Clone, Debug)]
pub struct Fact {
    label: String,
    text: String,
    /// Columns that labels take at the least.
    width: usize,
    /// Whether it belongs to the fact above.
    inner: bool,
}

impl Fact {
    /// A fact; labels of facts under each other have one width.
    pub fn new(label: impl Into<String>, width: usize, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), width, inner: false }
    }

    /// Whether it says nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether another one says the same.
    pub(crate) fn says_as(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The same as a part of the fact above it.
    pub(crate) fn inner(self) -> Self {
        Self { inner: true, ..self }
    }
}

/// The verdict of an answer that is wrong.
pub(crate) const MISSED: &str = "Missed";

/// A question and its answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The question.
    pub(crate) ask: String,
    /// `Yes`, `No`, `Not answered`; empty where the text alone is the answer.
    pub(crate) verdict: &'static str,
    /// The answer.
    pub(crate) text: String,
    /// The figure that decides, which pages show in large type.
    pub(crate) figure: Option<Tile>,
    /// Why it may not be believed; may be empty.
    pub(crate) doubt: String,
}

impl Answer {
    /// How far it is to be trusted: not at all where there is none.
    pub(crate) fn quality(&self) -> Quality {
        match (self.verdict, self.doubt.as_str()) {
            ("Not answered" | MISSED, _) => Quality::Bad,
            (_, "") => Quality::Good,
            _ => Quality::Doubtful,
        }
    }

    /// The answer with its verdict, and with what speaks against it: `Yes: 941 Mbit/s.`
    pub(crate) fn whole(&self) -> String {
        let told = match (self.verdict, self.text.as_str()) {
            ("", text) => text.to_owned(),
            (verdict, "") => format!("{verdict}."),
            (verdict, text) => format!("{verdict}: {text}"),
        };
        if self.doubt.is_empty() { told } else { format!("{told} * {}.", self.doubt) }
    }
}

/// One figure in large type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The figure.
    pub figure: String,
    /// What it is.
    pub label: String,
    /// What stands beside it: its ceiling, what it was; may be empty.
    pub beside: String,
}

impl Tile {
    /// A tile of these three.
    pub(crate) fn new(
        figure: impl Into<String>,
        label: impl Into<String>,
        beside: impl Into<String>,
    ) -> Self {
        Self { figure: figure.into(), label: label.into(), beside: beside.into() }
    }
}

/// A drawing with a caption, of one panel or of several that share their axes.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Heading.
    pub(crate) title: String,
    /// What to see in it, and how it was made.
    pub(crate) caption: String,
    /// File name and drawing of each panel.
    pub(crate) panels: Vec<(String, Svg)>,
}

impl Figure {
    /// A figure of panels that have files of their own.
    pub(crate) fn new(
        title: impl Into<String>,
        caption: impl Into<String>,
        panels: Vec<(String, Svg)>,
    ) -> Self {
        Self { title: title.into(), caption: caption.into(), panels }
    }

    /// A figure of one panel, whose file has the name of its title: `delay-over-time.svg`.
    pub(crate) fn of(title: &str, caption: &str, panel: Svg) -> Self {
        let name = format!("{}.svg", title.to_lowercase().replace(' ', "-"));
        Self::new(title, caption, vec![(name, panel)])
    }
}
