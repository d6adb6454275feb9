//! `docs/theory.md` and its plots, made from the sheet in `docs/formulas` and from what the
//! product computes; each example of the sheet is a test.

mod entry;
mod figure;
mod formulas;
mod inputs;
mod page;
mod plot;
mod published;
mod sheet;
mod tests;

pub(super) use page::{PLOTS, page, plots};
pub(super) use sheet::sheet;
