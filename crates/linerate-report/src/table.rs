//! One table, three renderings: terminal text, Markdown, HTML.
//!
//! The first column is a name and stands left, all others are figures and stand right.

use std::fmt::Write;

use crate::{escape, words};

/// A table with a heading row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<(Kind, Vec<String>)>,
    dropped: Vec<usize>,
}

/// Where a row's figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Measured now.
    Measured,
    /// Printed by the study that is rebuilt.
    Published,
}

impl Table {
    /// An empty table with these headings; a line end in one breaks it in text.
    pub(crate) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { head, rows: Vec::new(), dropped: Vec::new() }
    }

    /// The same table with the columns that a narrow terminal loses, the least telling first.
    pub(crate) fn dropping(self, columns: &[usize]) -> Self {
        Self { dropped: columns.to_vec(), ..self }
    }

    /// Adds a measured row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.push(Kind::Measured, cells);
    }

    /// Adds a row of one kind.
    pub(crate) fn push(&mut self, kind: Kind, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push((kind, cells.into_iter().map(Into::into).collect()));
    }

    /// Columns padded with spaces; each line indented by `indent` and ended.
    pub(crate) fn text(&self, indent: usize) -> String {
        let head = self.head_lines();
        let lines = || head.iter().chain(self.rows.iter().map(|(_, row)| row));
        let width = |column: usize| {
            let cells = lines().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut out = String::new();
        for line in lines() {
            let mut text = " ".repeat(indent);
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let cell = escape::line(cell);
                let pad = " ".repeat(width - cell.chars().count());
                match column {
                    0 => text.push_str(&(cell + &pad)),
                    _ => text.push_str(&format!("  {pad}{cell}")),
                }
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }

    /// As [`Table::text`], in lines of at most `width` where columns can be left out, and the rest
    /// folded under each other behind the first one; a last line names what was left out.
    pub(crate) fn text_within(&self, indent: usize, width: Option<usize>) -> String {
        let whole = self.text(indent);
        let Some(width) = width.filter(|width| widest(&whole) > *width) else { return whole };
        let mut kept: Vec<usize> = (0..self.head.len()).collect();
        let mut left_out = Vec::new();
        let mut text = whole;
        for column in &self.dropped {
            kept.retain(|it| it != column);
            left_out.push(*column);
            text = self.part(&kept).text(indent);
            if widest(&text) <= width {
                break;
            }
        }
        if widest(&text) > width {
            text = self.part(&kept).folded(indent, width);
        }
        left_out.sort_unstable();
        let names: Vec<String> =
            left_out.iter().map(|&column| self.head[column].replace('\n', " ")).collect();
        if !names.is_empty() {
            let line = format!("left out at this width: {}", names.join(", "));
            text.push_str(&words::wrapped(&escape::line(&line), indent, width));
        }
        text
    }

    /// Groups of columns under each other, each behind the first column.
    fn folded(&self, indent: usize, width: usize) -> String {
        let mut out = String::new();
        let mut group = vec![0];
        for column in 1..self.head.len() {
            group.push(column);
            if group.len() > 2 && widest(&self.part(&group).text(indent)) > width {
                group.pop();
                out.push_str(&self.part(&group).text(indent));
                group = vec![0, column];
            }
        }
        out + &self.part(&group).text(indent)
    }

    /// The table of some of its columns.
    fn part(&self, columns: &[usize]) -> Self {
        let pick = |cells: &Vec<String>| -> Vec<String> {
            columns.iter().map(|&it| cells.get(it).cloned().unwrap_or_default()).collect()
        };
        let rows = self.rows.iter().map(|(kind, cells)| (*kind, pick(cells))).collect();
        Self { head: pick(&self.head), rows, dropped: Vec::new() }
    }

    /// The heading on as many lines as its longest cell asks for; short cells stand at the bottom.
    fn head_lines(&self) -> Vec<Vec<String>> {
        let cells: Vec<Vec<&str>> =
            self.head.iter().map(|cell| cell.split('\n').collect()).collect();
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
        let rule: Vec<&str> =
            (0..self.head.len()).map(|column| if column == 0 { ":--" } else { "--:" }).collect();
        let head: Vec<String> = self.head.iter().map(|cell| cell.replace('\n', " ")).collect();
        let mut out = row(&head);
        let _ = writeln!(out, "| {} |", rule.join(" | "));
        self.rows.iter().for_each(|(_, cells)| out.push_str(&row(cells)));
        out
    }

    /// A `<table>` in a box that scrolls sideways on narrow screens.
    pub(crate) fn html(&self) -> String {
        let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for cell in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape::xml(cell));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for (kind, cells) in &self.rows {
            out.push_str(if *kind == Kind::Published {
                "<tr class=\"published\">"
            } else {
                "<tr>"
            });
            for (column, cell) in cells.iter().enumerate() {
                let cell = escape::xml(cell);
                let _ = match column {
                    0 => write!(out, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(out, "<td>{cell}</td>"),
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

/// A name or remark from outside, safe within Markdown.
pub fn markdown_cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape::line(text).chars() {
        if matches!(c, '|' | '<' | '*' | '_' | '`' | '\\' | '[') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["ping/size", "56", "1460"]);
        table.row(["avg", "0.00641", "0.0112"]);
        table.push(Kind::Published, ["a|b<c>", ".011", "\u{2014}"]);
        table
    }

    #[test]
    fn columns_line_up_in_text() {
        let expected = "  ping/size       56    1460\n\
                        \x20 avg        0.00641  0.0112\n\
                        \x20 a|b<c>        .011       \u{2014}\n";
        assert_eq!(table().text(2), expected);
    }

    #[test]
    fn a_table_too_wide_loses_its_least_telling_columns_and_says_which() {
        let mut table = Table::new(["name", "first", "second"]).dropping(&[2]);
        table.row(["a", "1", "2"]);
        // 4 + 2 + 5 + 2 + 6 = 19 columns.
        assert_eq!(table.text_within(0, Some(19)), table.text(0));
        assert_eq!(table.text_within(0, None), table.text(0));
        let narrow = "name  first\na         1\nleft out at this\nwidth: second\n";
        assert_eq!(table.text_within(0, Some(18)), narrow);
    }

    #[test]
    fn a_table_whose_columns_all_count_is_folded() {
        let mut table = Table::new(["name", "first", "second"]);
        table.row(["a", "1", "2"]);
        let folded = "name  first\na         1\nname  second\na          2\n";
        assert_eq!(table.text_within(0, Some(18)), folded);
        assert_eq!(table.text_within(0, Some(5)), folded, "a column is never cut");
    }

    #[test]
    fn markup_in_a_cell_stays_text() {
        assert!(table().markdown().contains("| a\\|b\\<c> | .011 |"));
        assert!(table().html().contains("<th scope=\"row\">a|b&lt;c&gt;</th>"));
    }
}
