//! `./dev count [DIRECTORY]`: prints what the tree is made of. Compiled by rustc alone, so that it
//! answers in seconds and counts any checkout, also one from before it was written.
#![allow(dead_code, reason = "shares its modules with the checks of main.rs")]

mod circles;
mod count;
mod source;
mod tree;

fn main() {
    let root = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let root = std::path::Path::new(&root);
    let counts = count::counts(&tree::sources(&tree::texts(root)));
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    print!("{}", count::table(&counts, &lock));
}
