//! A plan kept by one program on one host: it begins the runs of the calendar, keeps what came of
//! them, looks for lasting changes, and tells whoever is to know.
//!
//! A run is a child process, so that a measurement that hangs or fails takes nothing with it, and
//! the child keeps its own record: the store has it before this program knows of it. A run is
//! written down before it begins and never begun twice. Left out: other hosts.

mod child;
mod desk;
mod keeper;
mod lock;
mod news;
mod rein;
mod state;
mod watches;
mod words;
mod zone;

pub use desk::{Admit, BookedAt, Desk};
pub use keeper::{Keeper, KeeperCounts, KeeperOptions};
pub(crate) use lock::acquire_lock as take_lock;
pub(crate) use news::change_detail;
pub use rein::Rein;
pub use state::schedule_view;
pub(crate) use watches::Watches;
pub use zone::load_time_zone;

/// Runs of the calendar without a result, one after another, after which there is no data.
pub const NO_DATA_RUNS: usize = 3;
/// The reason of a run whose time came while nothing ran.
pub const NOT_RUNNING: &str = "the schedule did not run then";
/// Seconds for which a change is shown as an alert.
pub const NEWS_S: i64 = 86_400;
/// A runner that wrote nothing for so long does not run, seconds.
pub const SILENT_S: i64 = 180;
