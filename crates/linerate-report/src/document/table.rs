//! One table, three renderings: terminal text, Markdown, HTML.
//!
//! A column is typed: names and words stand left, figures right, prose is broken below itself.

use std::fmt::Write;

use super::markdown_cell;
use crate::number::NONE;
use crate::{escape, words};

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left: names and words.
    Left,
    /// At the right: figures.
    Right,
    /// Sentences, in the last column: broken below themselves where they are long.
    Prose,
}

/// A column: its heading and where its cells stand.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    align: Align,
}

/// A column of a table of rows `R`: its heading, and the cell of a row.
pub(crate) type Cells<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

/// A table with a heading row.
#[derive(Clone, Debug, Default)]
pub struct ReportTable {
    columns: Vec<Column>,
    rows: Vec<(RowKind, Vec<String>)>,
    dropped: Vec<usize>,
    /// True if only pages show the table, because terminals have its content in other words.
    pages_only: bool,
    /// True if every second column holds published figures.
    past_beside: bool,
}

/// Origin of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Measured by the run itself.
    Measured,
    /// Printed by the study that is rebuilt.
    Published,
    /// One of so many that a terminal shows their extremes and sum alone.
    OneOfMany,
}

/// Prose that would have less room than this beside the other columns stands under them.
const PROSE_MIN: usize = 24;

impl ReportTable {
    /// An empty table whose first column is a name, and all others figures.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let align = |at| if at == 0 { Align::Left } else { Align::Right };
        Self::from_columns(names.into_iter().enumerate().map(|(at, name)| (name, align(at))))
    }

    /// An empty table of columns with these headings; a line end in one breaks it in text.
    pub fn from_columns(columns: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| Column { name: name.into(), align });
        Self { columns: columns.collect(), ..Self::default() }
    }

    /// A table of these rows: of each column the heading, and the cell of a row.
    pub(crate) fn from_rows<R>(
        rows: impl IntoIterator<Item = R>,
        columns: &[Cells<'_, R>],
    ) -> Self {
        let rows = rows
            .into_iter()
            .map(|row| columns.iter().map(move |(_, cell)| cell(&row)).collect::<Vec<_>>());
        Self::new(columns.iter().map(|(name, _)| *name)).with_rows(rows)
    }

    /// True if the table has no rows.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of columns.
    pub(crate) const fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The same table with the columns that a narrow terminal loses, the least telling first;
    /// those without a value go before all others.
    pub fn dropping(self, columns: &[usize]) -> Self {
        Self { dropped: columns.to_vec(), ..self }
    }

    /// The same for pages alone: terminals say it in other words.
    pub(crate) fn on_pages(self) -> Self {
        Self { pages_only: true, ..self }
    }

    /// The same with every second column of the past.
    pub(crate) fn past_beside(self) -> Self {
        Self { past_beside: true, ..self }
    }

    /// True if terminals show the table.
    pub(crate) const fn is_for_terminals(&self) -> bool {
        !self.pages_only
    }

    /// Adds a measured row.
    pub fn add_measured_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.push(RowKind::Measured, cells);
    }

    /// The same table with these rows.
    pub fn with_rows<C: Into<String>>(
        mut self,
        rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
    ) -> Self {
        rows.into_iter().for_each(|row| self.add_measured_row(row));
        self
    }

    /// Adds a row of one kind.
    pub(crate) fn push(
        &mut self,
        kind: RowKind,
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) {
        self.rows.push((kind, cells.into_iter().map(Into::into).collect()));
    }

    /// Columns padded with spaces, each line indented and ended. Within a width columns are left
    /// out, and the rest is folded under each other behind the first one; a last line names what
    /// was left out.
    pub(crate) fn text(&self, indent: usize, width: Option<usize>) -> String {
        let whole = self.laid_out(indent, width);
        let Some(width) = width.filter(|width| widest(&whole) > *width) else { return whole };
        let is_empty = |column: &usize| {
            let mut cells = self.rows.iter().filter_map(|(_, row)| row.get(*column));
            cells.all(|cell| cell == NONE || cell == "-")
        };
        let (empty, full): (Vec<usize>, Vec<usize>) =
            self.dropped.iter().partition(|column| is_empty(column));
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out = Vec::new();
        let mut text = whole;
        for column in empty.into_iter().chain(full) {
            kept.retain(|other| *other != column);
            left_out.push(column);
            text = self.select_columns(&kept).laid_out(indent, Some(width));
            if widest(&text) <= width {
                break;
            }
        }
        if widest(&text) > width {
            text = self.select_columns(&kept).folded(indent, width);
        }
        left_out.sort_unstable();
        let names: Vec<String> =
            left_out.iter().map(|&column| self.columns[column].name.replace('\n', " ")).collect();
        if !names.is_empty() {
            let line = format!("left out at this width: {}", names.join(", "));
            text.push_str(&words::wrapped(&escape::without_controls(&line), indent, width));
        }
        text
    }

    /// All columns beside each other.
    fn laid_out(&self, indent: usize, width: Option<usize>) -> String {
        let head = self.head_lines();
        let rows = self.rows.iter().filter(|(kind, _)| *kind != RowKind::OneOfMany);
        let lines: Vec<&Vec<String>> = head.iter().chain(rows.map(|(_, row)| row)).collect();
        let widest_cell = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(widest_cell).collect();
        let limit = width.map_or(words::COLUMNS, |width| width.min(words::COLUMNS));
        let mut out = String::new();
        for line in lines {
            let mut text = " ".repeat(indent);
            for (at, ((cell, column), width)) in
                line.iter().zip(&self.columns).zip(&widths).enumerate()
            {
                let cell = escape::without_controls(cell);
                let pad = " ".repeat(width - cell.chars().count());
                text.push_str(if at == 0 { "" } else { "  " });
                match column.align {
                    Align::Left => text.push_str(&(cell + &pad)),
                    Align::Right => text.push_str(&(pad + &cell)),
                    Align::Prose => {
                        let start = text.chars().count();
                        let beside = start + PROSE_MIN <= limit;
                        let start = if beside { start } else { indent + 4 };
                        let prose = words::wrapped(&cell, start, limit);
                        if beside {
                            text.push_str(prose.get(start..).unwrap_or_default());
                        } else {
                            text = format!("{}\n{prose}", text.trim_end());
                        }
                    }
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }

    /// Groups of columns under each other, each behind the first column.
    fn folded(&self, indent: usize, width: usize) -> String {
        let laid_out = |group: &[usize]| self.select_columns(group).laid_out(indent, Some(width));
        let mut out = String::new();
        let mut group = vec![0];
        for column in 1..self.columns.len() {
            group.push(column);
            if group.len() > 2 && widest(&laid_out(&group)) > width {
                group.pop();
                out.push_str(&laid_out(&group));
                group = vec![0, column];
            }
        }
        out + &laid_out(&group)
    }

    /// The table of some of its columns.
    fn select_columns(&self, columns: &[usize]) -> Self {
        let pick = |cells: &Vec<String>| -> Vec<String> {
            columns.iter().map(|&it| cells.get(it).cloned().unwrap_or_default()).collect()
        };
        let rows = self.rows.iter().map(|(kind, cells)| (*kind, pick(cells))).collect();
        let columns = columns.iter().map(|&it| self.columns[it].clone()).collect();
        Self { columns, rows, ..Self::default() }
    }

    /// The heading on as many lines as its longest cell asks for; short cells stand at the bottom.
    fn head_lines(&self) -> Vec<Vec<String>> {
        let cells: Vec<Vec<&str>> =
            self.columns.iter().map(|column| column.name.split('\n').collect()).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let at = |cell: &Vec<&str>| {
                let above = height - cell.len();
                index.checked_sub(above).map_or_else(String::new, |index| cell[index].to_owned())
            };
            cells.iter().map(at).collect()
        };
        (0..height).map(line).collect()
    }

    /// A pipe table.
    pub(crate) fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| markdown_cell(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = |column: &Column| if column.align == Align::Right { "--:" } else { ":--" };
        let rule: Vec<&str> = self.columns.iter().map(rule).collect();
        let head = self.columns.iter().map(|column| column.name.replace('\n', " "));
        let head: Vec<String> = head.collect();
        let mut out = row(&head);
        let _ = writeln!(out, "| {} |", rule.join(" | "));
        self.rows.iter().for_each(|(_, cells)| out.push_str(&row(cells)));
        out
    }

    /// A `<table>` in a box that scrolls sideways on narrow screens.
    pub(crate) fn html(&self) -> String {
        let class = if self.past_beside { " class=\"compare\"" } else { "" };
        let mut out = format!("<div class=\"scroll\"><table{class}>\n<thead><tr>");
        let left = |at: usize| match self.columns.get(at).map(|column| column.align) {
            Some(Align::Right) | None => "",
            Some(Align::Left | Align::Prose) => " class=\"text\"",
        };
        for (at, column) in self.columns.iter().enumerate() {
            let name = escape::xml_escaped(&column.name);
            let _ = write!(out, "<th scope=\"col\"{}>{name}</th>", left(at));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for (kind, cells) in &self.rows {
            let past = *kind == RowKind::Published;
            out.push_str(if past { "<tr class=\"published\">" } else { "<tr>" });
            for (at, cell) in cells.iter().enumerate() {
                let cell = escape::xml_escaped(cell);
                let _ = match at {
                    0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(out, "<td{}>{cell}</td>", left(at)),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_table() -> ReportTable {
        let mut table = ReportTable::new(["ping/size", "56", "1460"]);
        table.add_measured_row(["avg", "0.00641", "0.0112"]);
        table.push(RowKind::Published, ["a|b<c>", ".011", "\u{2014}"]);
        table
    }

    #[test]
    fn columns_line_up_in_text() {
        let expected = "  ping/size       56    1460\n\
                        \x20 avg        0.00641  0.0112\n\
                        \x20 a|b<c>        .011       \u{2014}\n";
        assert_eq!(sample_table().text(2, None), expected);
    }

    #[test]
    fn a_table_too_wide_loses_its_least_telling_columns_and_says_which() {
        let mut table = ReportTable::new(["name", "first", "second"]).dropping(&[2]);
        table.add_measured_row(["a", "1", "2"]);
        // 4 + 2 + 5 + 2 + 6 = 19 columns.
        let whole = "name  first  second\na         1       2\n";
        assert_eq!([table.text(0, Some(19)), table.text(0, None)], [whole, whole]);
        let narrow = "name  first\na         1\nleft out at this\nwidth: second\n";
        assert_eq!(table.text(0, Some(18)), narrow);
    }

    #[test]
    fn a_table_whose_columns_all_count_is_folded() {
        let mut table = ReportTable::new(["name", "first", "second"]);
        table.add_measured_row(["a", "1", "2"]);
        let folded = "name  first\na         1\nname  second\na          2\n";
        assert_eq!(table.text(0, Some(18)), folded);
        assert_eq!(table.text(0, Some(5)), folded, "a column is never cut");
    }

    #[test]
    fn markup_in_a_cell_stays_text() {
        assert!(sample_table().markdown().contains("| a\\|b\\<c> | .011 |"));
        assert!(sample_table().html().contains("<th scope=\"row\">a|b&lt;c&gt;</th>"));
    }

    #[test]
    fn columns_without_a_value_go_before_those_that_tell_less() {
        let names = ["id", "value", "study", "name"];
        let mut table =
            ReportTable::from_columns(names.map(|name| (name, Align::Left))).dropping(&[1, 2]);
        table.add_measured_row(["1234", "16384", "-", "first"]);
        table.add_measured_row(["5678", "56", NONE, "second"]);
        // 4 + 2 + 5 + 2 + 5 + 2 + 6 = 26 columns in all, 19 without the study.
        assert_eq!(table.text(0, Some(26)).lines().next(), Some("id    value  study  name"));
        assert_eq!(table.text(0, Some(25)).lines().next(), Some("id    value  name"));
        assert_eq!(table.text(0, Some(18)).lines().next(), Some("id    name"));
    }

    #[test]
    fn prose_is_broken_below_itself_and_stands_under_its_row_where_there_is_no_room() {
        let columns = [("bound", Align::Left), ("Mbit/s", Align::Right), ("formula", Align::Prose)];
        let table = ReportTable::from_columns(columns);
        let table = table.with_rows([["loss", "9.9", "aaaa bbbb cccc dddd eeee ffff gggg"]]);
        let wide = "bound  Mbit/s  formula\n\
                    loss      9.9  aaaa bbbb cccc dddd eeee\n\
                    \x20              ffff gggg\n";
        assert_eq!(table.text(0, Some(40)), wide);
        let narrow = "bound  Mbit/s\n    formula\nloss      9.9\n\
                      \x20   aaaa bbbb cccc dddd eeee\n    ffff gggg\n";
        assert_eq!(table.text(0, Some(30)), narrow);
    }

    #[test]
    fn one_of_many_is_for_pages() {
        let mut table = sample_table();
        table.push(RowKind::OneOfMany, ["hidden, a long name", "1", "2"]);
        assert_eq!(table.text(2, None), sample_table().text(2, None));
        assert!(table.html().contains("hidden"));
    }
}
