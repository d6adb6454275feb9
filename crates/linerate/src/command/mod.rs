//! One file per subcommand: flags in, plan out, and what to print.
pub(crate) mod ceiling;
pub(crate) mod conform;
pub(crate) mod doctor;
mod doctor_checks;
pub(crate) mod generate;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod measure;
pub(crate) mod path;
pub(crate) mod ping;
mod ping_text;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod study;
pub(crate) mod tcp;
pub(crate) mod test;
pub(crate) mod udp;
mod udp_search;
