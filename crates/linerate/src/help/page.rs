//! What is said of a command beside its flags.

/// Examples and references of one command's page, beside its flags.
pub(crate) struct HelpPage {
    /// Its name without the program's: `path run`.
    pub(crate) command: &'static str,
    /// Long flags that `-h` shows; all where none is named.
    pub(crate) shown: &'static [&'static str],
    /// A command line and its explanation. `-h` shows the first two.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// Related pages beside the commands above and below: of ours by the command's name, of others
    /// with their section.
    pub(crate) see: &'static [&'static str],
}

impl HelpPage {
    /// Page of a command that has no examples.
    pub(super) const NONE: Self = Self { command: "", shown: &[], examples: &[], see: &[] };
}
