//! The commands that a core build leaves out (feature `commands`): what takes a laboratory, raw
//! frames, studies or the stored results, and what serves packagers.

use clap::Subcommand;

use crate::command;
use crate::exit::Outcome;

/// A command that a core build lacks.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is moved once")]
pub(crate) enum BeyondCore {
    /// Find the path to a host hop by hop: loss, queue, packet sizes
    ///
    /// Find the path to a host hop by hop: who is on it, where packets are lost, where the queue
    /// stands under load, what sizes and header fields survive.
    Trace(command::trace::Args),
    /// Measure delay while the line is full both ways (flent's RRUL)
    ///
    /// Realtime Response Under Load, as flent defines it: four TCP streams each way, of four
    /// classes of service, and probes by UDP and ICMP before and beside them.
    Rrul(command::rrul::Args),
    /// Compare targets, measured in turn: is the difference real?
    ///
    /// Compare the round-trip times or the TCP goodput of targets, or of ways to one target,
    /// measured in turn, and tell whether a difference is more than the measurement's own.
    Compare(command::compare::Args),
    /// Benchmark a router, switch or bridge with raw frames (RFC 2544 ...)
    ///
    /// Benchmark a router, switch or bridge with raw frames (RFC 2544, 2889, 9971).
    Bench(command::bench::Args),
    /// Check a capture or live traffic against a traffic contract
    Conform(command::conform::Args),
    /// Calculate the maximum throughput of a path and its bottleneck
    Ceiling(command::ceiling::Args),
    /// Build a virtual network of hosts, switches and routers here
    Lab(command::lab::Args),
    /// Emulate a path, live or in virtual time
    Path(command::path::Args),
    /// Run a study: a set of measurements over virtual networks
    Study(command::study::Args),
    /// Measure again and again by a plan; changes are found and explained
    Schedule(command::schedule::Args),
    /// Plan measurements between many hosts: check, sign, join, matrix
    #[cfg(feature = "web")]
    Mesh(command::mesh::Args),
    /// Measure as one host of a mesh
    #[cfg(feature = "web")]
    Agent(command::agent::Args),
    /// Show a stored result or the report of a study
    Report(command::report::Args),
    /// List stored results, filtered by what they were
    History(command::history::Args),
    /// Compare two stored results, metric by metric
    Diff(command::diff::Args),
    /// Write stored results as JSON or CSV
    Export(command::export::Args),
    /// Check whether this host is fit to measure
    Doctor(command::doctor::Args),
    /// The former name of doctor clock
    #[command(hide = true)]
    Calibrate(command::doctor::CalibrateArgs),
    /// Print shell completions, man pages and schemas
    Generate(command::generate::Args),
}

impl BeyondCore {
    /// Runs the command, which core builds leave out.
    pub(crate) fn run(self) -> Outcome {
        match self {
            Self::Rrul(args) => command::rrul::run(args),
            Self::Trace(args) => command::trace::run(args),
            Self::Compare(args) => command::compare::run(args),
            Self::Bench(args) => command::bench::run(args),
            Self::Conform(args) => command::conform::run(args),
            Self::Ceiling(args) => command::ceiling::run(args),
            Self::Lab(args) => command::lab::run(args),
            Self::Path(args) => command::path::run(args),
            Self::Study(args) => command::study::run(args),
            Self::Schedule(args) => command::schedule::run(args),
            #[cfg(feature = "web")]
            Self::Mesh(args) => command::mesh::run(args),
            #[cfg(feature = "web")]
            Self::Agent(args) => command::agent::run(args),
            Self::Report(args) => command::report::run(args),
            Self::History(args) => command::history::run(args),
            Self::Diff(args) => command::diff::run(args),
            Self::Export(args) => command::export::run(args),
            Self::Doctor(args) => command::doctor::run(args),
            Self::Calibrate(args) => command::doctor::calibrate(&args),
            Self::Generate(args) => command::generate::run(args),
        }
    }
}
