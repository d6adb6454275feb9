//! Documents as lines for a terminal.
//!
//! The order is fixed: the answer in one line where there is one, what was measured, what the
//! instrument itself spoiled, the figures, what else has to be known, the failure; without a
//! headline one plain sentence at the end.

use anstyle::{AnsiColor, Style};

use super::{Block, Detail, Document, Fact, ReportSection, Screen};
use crate::headline::{Headline, Quality};
use crate::{escape, words};

/// The whole document; lines are ended, the last one too.
pub(super) fn render(document: &Document, screen: &Screen) -> String {
    let titled = !document.title.is_empty();
    let (width, colour) = (screen.width, screen.colour);
    let mut page = Page { out: String::new(), width, colour, indent: if titled { 2 } else { 0 } };
    if let Some(headline) = &document.headline {
        page.headline(headline);
        if screen.detail != Detail::Full {
            if screen.detail == Detail::Brief {
                page.indent = 2;
                document.brief.iter().for_each(|block| page.push_block(block, 4));
            }
            return page.out;
        }
    }
    if titled {
        page.push_line(0, &document.title);
    }
    document.head.iter().for_each(|block| page.push_block(block, 4));
    // Whether it limited the result is the headline's to say.
    let host = if document.headline.is_some() { "this host" } else { "limited by this host" };
    document.limits.iter().for_each(|limit| page.push_line(2, &format!("{host}: {limit}")));
    let mut after_apart = false;
    for section in document.sections.iter().filter(|section| section.is_told()) {
        page.section(section, section.apart || after_apart);
        after_apart = section.apart;
    }
    let sentence = document.headline.is_none().then_some(document.sentence.as_str());
    let sentence = sentence.filter(|sentence| !sentence.is_empty());
    let closes = !document.notes.is_empty() || sentence.is_some();
    if closes && after_apart {
        page.out.push('\n');
    }
    document.notes.iter().for_each(|note| page.push_line(2, &format!("note: {note}")));
    let failure = document.failure.iter();
    failure.for_each(|(how, why)| page.push_line(2, &format!("{how}: {why}")));
    if let Some(sentence) = sentence {
        page.push_line(0, sentence);
    }
    page.out
}

const fn colour(quality: Quality) -> AnsiColor {
    match quality {
        Quality::Good => AnsiColor::Green,
        Quality::Doubtful => AnsiColor::Yellow,
        Quality::Bad => AnsiColor::Red,
    }
}

/// Texts that would have less room than this beside their labels go on under them.
const ROOM_MIN: usize = 24;

/// The lines so far, and how those to come are set.
struct Page {
    out: String,
    width: Option<usize>,
    colour: bool,
    /// Where blocks begin: sections without a title in a document without one stand at the edge.
    indent: usize,
}

impl Page {
    /// The answer; what does not fit goes on below, set in.
    fn headline(&mut self, headline: &Headline) {
        let start = self.out.len();
        self.hanging(0, 2, &headline.summary_line(), self.width.unwrap_or(usize::MAX));
        if self.colour {
            let style = Style::new().bold().fg_color(Some(colour(headline.quality).into()));
            let lines = self.out.split_off(start);
            self.out.push_str(&format!("{style}{}{style:#}\n", lines.trim_end()));
        }
    }

    /// Bold, in the colour of a quality, where there are colours.
    fn colour_range(&mut self, place: std::ops::Range<usize>, quality: Quality) {
        if self.colour && !place.is_empty() {
            let style = Style::new().bold().fg_color(Some(colour(quality).into()));
            let text = format!("{style}{}{style:#}", &self.out[place.clone()]);
            self.out.replace_range(place, &text);
        }
    }

    fn section(&mut self, section: &ReportSection, set_off: bool) {
        if set_off && !self.out.is_empty() {
            self.out.push('\n');
        }
        let outer = self.indent;
        if !section.title.is_empty() {
            self.indent = 2;
            match section.apart {
                true => self.push_prose(0, 0, &section.title),
                false => self.push_line(0, &section.title),
            }
        }
        let mut after_table = false;
        for block in &section.blocks {
            let is_table = matches!(block, Block::Table(_));
            if is_table && after_table {
                self.out.push('\n');
            }
            self.push_block(block, if section.apart { 2 } else { 4 });
            after_table = is_table;
        }
        self.indent = outer;
    }

    /// A block; a remark that is broken goes on at column `hang`.
    fn push_block(&mut self, block: &Block, hang: usize) {
        let indent = self.indent;
        match block {
            Block::Table(table) if table.is_for_terminals() => {
                self.out.push_str(&table.text(indent, self.width));
            }
            Block::Remarks(lines) => {
                lines.iter().for_each(|line| self.push_prose(indent, hang.max(indent), line));
            }
            Block::Lines(lines) => lines.iter().for_each(|line| self.push_line(indent, line)),
            Block::Facts(facts) => facts.iter().for_each(|fact| self.push_fact(fact)),
            Block::Text(text) => self.push_prose(0, 0, text),
            Block::Answers(answers) => answers.iter().for_each(|answer| {
                self.push_prose(indent, indent, &answer.ask);
                let verdict = self.out.len() + indent + 2;
                self.push_prose(indent + 2, indent + 2, &answer.full_text());
                self.colour_range(verdict..verdict + answer.verdict.len(), answer.quality());
            }),
            Block::Table(_) | Block::Figure(_) => {}
        }
    }

    fn push_fact(&mut self, fact: &Fact) {
        let indent = self.indent + if fact.inner { 2 } else { 0 };
        let label = format!("{:indent$}{:<width$}  ", "", fact.label, width = fact.width);
        let hang = label.chars().count();
        let width = self.width.unwrap_or(usize::MAX);
        if hang + ROOM_MIN > width {
            return self.hanging(
                indent,
                indent + 2,
                &format!("{}  {}", fact.label, fact.text),
                width,
            );
        }
        let lines = words::wrapped(&escape::without_controls(&fact.text), hang, width);
        self.out.push_str(&label);
        self.out.push_str(lines.get(hang..).unwrap_or_default());
    }

    /// A line that only a terminal's width breaks.
    fn push_line(&mut self, indent: usize, text: &str) {
        let hang = if indent == 0 { 0 } else { indent + 2 };
        self.hanging(indent, hang, text, self.width.unwrap_or(usize::MAX));
    }

    /// A sentence, broken where it is longer than a reader's eye or the terminal likes.
    fn push_prose(&mut self, indent: usize, hang: usize, text: &str) {
        let width = self.width.map_or(words::COLUMNS, |width| width.min(words::COLUMNS));
        self.hanging(indent, hang, text, width);
    }

    fn hanging(&mut self, indent: usize, hang: usize, text: &str, width: usize) {
        let lines = words::wrapped(&escape::without_controls(text), hang, width);
        self.out.push_str(lines.get(hang - indent..).unwrap_or_default());
    }
}
