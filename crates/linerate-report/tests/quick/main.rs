//! Tests of everything that is rendered, held to golden files in `tests/golden` and to the rules of
//! each format.

mod agreement;
mod answers;
mod bench;
mod common;
mod pages;
mod plots;
mod screens;
mod single;
mod study;
mod style;
