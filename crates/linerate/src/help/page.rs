//! What is said of a command beside its flags.

/// What is said of one command beside its flags.
pub(crate) struct Page {
    /// Its name without the program's: `path run`.
    pub(crate) command: &'static str,
    /// Long flags that `-h` shows; all where none is named.
    pub(crate) shown: &'static [&'static str],
    /// A command line and what it does. `-h` shows the first two.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// Related pages beside the commands above and below: of ours by the command's name, of others
    /// with their section.
    pub(crate) see: &'static [&'static str],
}

impl Page {
    /// Of a command that has none.
    pub(super) const NONE: Self = Self { command: "", shown: &[], examples: &[], see: &[] };
}
