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
pub use table::{Align, ReportTable};
pub(crate) use table::{Cells, RowKind};

/// The report on a record, a comparison or a study, ready to be rendered as text, Markdown or HTML.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The result in one line, printed first; `None` where the sentence states it.
    pub(crate) headline: Option<Headline>,
    /// The measurement in one line, as a title.
    pub(crate) title: String,
    /// Time, hosts and settings, printed under the title.
    pub(crate) head: Vec<Block>,
    /// Caveats about the measuring hosts, such as a busy CPU, printed before the figures.
    pub(crate) limits: Vec<String>,
    /// The main figures in large type; only pages show them.
    pub(crate) tiles: Vec<Tile>,
    /// The sections with tables, remarks and figures.
    pub(crate) sections: Vec<ReportSection>,
    /// Further caveats and remarks, printed after the sections.
    pub(crate) notes: Vec<String>,
    /// The blocks printed under the headline where only a brief report is wanted.
    pub(crate) brief: Vec<Block>,
    /// The way in which the measurement failed or ended early, and the reason.
    pub(crate) failure: Option<(&'static str, String)>,
    /// The whole result in one plain sentence; with a headline only pages show it.
    pub(crate) sentence: String,
    /// The metrics whose definitions a page lists.
    pub(crate) metrics: Vec<MetricId>,
    /// The plan as JSON, shown on pages.
    pub(crate) plan: Option<String>,
    /// The program's version and the record's identifier, at the foot of a page.
    pub(crate) foot: String,
}

impl Document {
    /// The heading above the caveats about the measuring hosts. It says "limited" only where the
    /// headline names this host as the limit.
    pub(crate) fn heading_of_limits(&self) -> &'static str {
        match &self.headline {
            Some(headline) if !headline.names_this_host() => "This host had a part in it",
            _ => "Limited by this host",
        }
    }

    /// A document of one table without a title, for lists.
    pub fn from_table(table: ReportTable) -> Self {
        Self::default().with_section([Block::Table(table)])
    }

    /// The document with one more section, which has no title.
    pub fn with_section(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.sections.push(ReportSection::after_blank_line("", blocks));
        self
    }

    /// The full report for a terminal of `width` columns without colours, each line ended: tables
    /// lose columns or fold, and lines break where they are too long. Without a width only long
    /// remarks are broken.
    pub fn text(&self, width: Option<usize>) -> String {
        self.render_on_screen(&Screen { width, ..Screen::default() })
    }

    /// The report in the width, colours and detail of a screen, each line ended.
    pub fn render_on_screen(&self, screen: &Screen) -> String {
        text::render(self, screen)
    }

    /// The document of a record that is not stored: its headline has no identifier.
    pub fn not_kept(mut self) -> Self {
        if let Some(headline) = &mut self.headline {
            headline.id.clear();
        }
        self
    }

    /// The report as Markdown, without figures.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// File name and SVG of every panel of the figures.
    pub fn svg_files(&self) -> Vec<(String, String)> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let panels = blocks.flat_map(|block| match block {
            Block::Figure(figure) => figure.panels.as_slice(),
            _ => &[],
        });
        panels.map(|(name, svg)| (name.clone(), svg.file_with_style())).collect()
    }

    /// Two documents: the sentence alone, and all else.
    pub fn apart_from_sentence(self) -> (Self, Self) {
        let sentence = self.sentence.clone();
        let rest = Self { sentence: String::new(), ..self };
        (Self { sentence, ..Self::default() }, rest)
    }

    /// The document reduced to its leading sections, where one of them has text or a table.
    pub fn keep_leading_sections(mut self) -> Self {
        if self.sections.iter().any(|section| section.leads && section.is_told()) {
            self.sections.retain(|section| section.leads);
        }
        self
    }

    /// The report as one HTML file with figures, without scripts and without requests to other
    /// hosts.
    pub fn html(&self) -> String {
        html::render(self)
    }
}

/// Width, colours and detail with which a terminal shows a document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Screen {
    /// Columns of the terminal; `None` for files and pipes, for which lines are not broken.
    pub width: Option<usize>,
    /// True if the terminal shows colours.
    pub colour: bool,
    /// The amount of detail that is printed.
    pub detail: Detail,
}

/// The amount of detail of a printed report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The headline alone, in one line that is not broken.
    Answer,
    /// The headline and a few facts.
    Brief,
    /// The whole report.
    #[default]
    Full,
}

/// A heading with the blocks that stand under it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportSection {
    /// The heading; may be empty.
    pub title: String,
    /// The blocks in the order in which they are printed.
    pub blocks: Vec<Block>,
    /// True if a terminal prints an empty line before it.
    pub apart: bool,
    /// True if a page shows it before the other sections.
    pub leads: bool,
}

impl ReportSection {
    /// A section before which a terminal prints an empty line.
    pub(crate) fn after_blank_line(
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Self {
        Self { apart: true, ..Self::without_blank_line(title, blocks) }
    }

    /// A section that a terminal prints without an empty line before it.
    pub(crate) fn without_blank_line(
        title: impl Into<String>,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Self {
        let blocks = blocks.into_iter().collect();
        Self { title: title.into(), blocks, ..Self::default() }
    }

    /// A section of tables with remarks under them.
    pub(crate) fn from_tables(
        title: impl Into<String>,
        tables: impl IntoIterator<Item = ReportTable>,
        notes: Vec<String>,
    ) -> Self {
        let blocks = tables.into_iter().map(Block::Table);
        Self::after_blank_line(title, blocks.chain([Block::Remarks(notes)]))
    }

    /// The section, shown before the others on a page.
    pub(crate) fn leading(self) -> Self {
        Self { leads: true, ..self }
    }

    /// True if the section has text or a table for terminals; figures are only for pages.
    fn is_told(&self) -> bool {
        let is_told = |block: &Block| match block {
            Block::Figure(_) => false,
            Block::Table(table) => table.is_for_terminals(),
            Block::Remarks(lines) | Block::Lines(lines) => !lines.is_empty(),
            Block::Facts(_) | Block::Text(_) | Block::Answers(_) => true,
        };
        self.blocks.iter().any(is_told) || (self.blocks.is_empty() && !self.title.is_empty())
    }

    /// The remarks of all blocks.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &String> {
        self.blocks.iter().flat_map(|block| match block {
            Block::Remarks(remarks) => remarks.as_slice(),
            _ => &[],
        })
    }
}

/// A part of a section, by the way it is laid out.
#[derive(Clone, Debug)]
pub enum Block {
    /// A table with headings.
    Table(ReportTable),
    /// Sentences, each on lines of its own; long ones are broken.
    Remarks(Vec<String>),
    /// Lines in a form that other programs read; only a terminal's width breaks them.
    Lines(Vec<String>),
    /// Labels with their texts, in two columns.
    Facts(Vec<Fact>),
    /// A paragraph that begins at the left edge.
    Text(String),
    /// Questions with their answers.
    Answers(Vec<StudyAnswer>),
    /// A drawing, shown on pages.
    Figure(ReportFigure),
}

/// A label with its text, a line of a list of facts.
#[derive(Clone, Debug)]
pub struct Fact {
    label: String,
    text: String,
    /// Least columns that the label takes.
    width: usize,
    /// True if it is indented as part of the fact above it.
    inner: bool,
}

impl Fact {
    /// A fact. The labels of facts that stand under each other are given the same width.
    pub fn new(label: impl Into<String>, width: usize, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), width, inner: false }
    }

    /// True if the text is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// True if the other fact has the same text.
    pub(crate) fn says_as(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The fact, indented as part of the one above it.
    pub(crate) fn indented(self) -> Self {
        Self { inner: true, ..self }
    }
}

/// Verdict of an answer that the planted truth shows to be wrong.
pub(crate) const MISSED: &str = "Missed";

/// A question of a study and its answer.
#[derive(Clone, Debug)]
pub struct StudyAnswer {
    /// The question as the study's plan states it.
    pub(crate) ask: String,
    /// `Yes`, `No`, `Not answered`; empty where the text alone is the answer.
    pub(crate) verdict: &'static str,
    /// The answer in words.
    pub(crate) text: String,
    /// The figure that decides the answer; pages show it in large type.
    pub(crate) figure: Option<Tile>,
    /// The reason for which the answer is doubtful; empty where there is none.
    pub(crate) doubt: String,
}

impl StudyAnswer {
    /// Trust in the answer: bad where it is missing or wrong, doubtful where a doubt is stated.
    pub(crate) fn quality(&self) -> Quality {
        match (self.verdict, self.doubt.as_str()) {
            ("Not answered" | MISSED, _) => Quality::Bad,
            (_, "") => Quality::Good,
            _ => Quality::Doubtful,
        }
    }

    /// The verdict, the answer and the doubt in one text: `Yes: 941 Mbit/s.`
    pub(crate) fn full_text(&self) -> String {
        let told = match (self.verdict, self.text.as_str()) {
            ("", text) => text.to_owned(),
            (verdict, "") => format!("{verdict}."),
            (verdict, text) => format!("{verdict}: {text}"),
        };
        if self.doubt.is_empty() { told } else { format!("{told} * {}.", self.doubt) }
    }
}

/// One figure in large type with its label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The figure with its unit.
    pub figure: String,
    /// The name of the figure.
    pub label: String,
    /// A figure to compare with, such as the ceiling or an earlier value; may be empty.
    pub beside: String,
}

impl Tile {
    /// A tile of a figure, its label and the text beside it.
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
pub struct ReportFigure {
    /// Heading above the drawing.
    pub(crate) title: String,
    /// Explanation of the drawing and of how its figures were measured.
    pub(crate) caption: String,
    /// File name and drawing of each panel.
    pub(crate) panels: Vec<(String, Svg)>,
}

impl ReportFigure {
    /// A figure of panels with their file names.
    pub(crate) fn new(
        title: impl Into<String>,
        caption: impl Into<String>,
        panels: Vec<(String, Svg)>,
    ) -> Self {
        Self { title: title.into(), caption: caption.into(), panels }
    }

    /// A figure of one panel, whose file is named by the title: `delay-over-time.svg`.
    pub(crate) fn from_panel(title: &str, caption: &str, panel: Svg) -> Self {
        let name = format!("{}.svg", title.to_lowercase().replace(' ', "-"));
        Self::new(title, caption, vec![(name, panel)])
    }
}
