//! `./dev count [DIRECTORY]`: prints what the tree is made of; `--release` writes docs/counts.toml.
//! Compiled by rustc alone, so that it answers in seconds and counts any checkout, also one from
//! before it was written.
#![allow(dead_code, reason = "shares its modules with the checks of main.rs")]

mod circles;
mod count;
mod names;
mod source;
mod tree;

fn main() -> std::io::Result<()> {
    let argument = std::env::args().nth(1);
    let is_release = argument.as_deref() == Some("--release");
    let root = argument.filter(|_| !is_release).unwrap_or_else(|| ".".to_owned());
    let root = std::path::Path::new(&root);
    let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let counts = count::counts(&tree::sources(&tree::texts(root)));
    if is_release {
        let released = count::release(&counts, count::version(&text("Cargo.toml")));
        return std::fs::write(root.join("docs/counts.toml"), released);
    }
    // Of this tree, wherever the counted one is.
    let released = std::fs::read_to_string("docs/counts.toml").unwrap_or_default();
    print!("{}", count::report(&counts, &released, &text("Cargo.lock")));
    Ok(())
}
