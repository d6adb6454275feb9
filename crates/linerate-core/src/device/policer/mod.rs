//! Which contract a device holds traffic to, from what it let pass and what it dropped of a train.
//!
//! `conformance` asks what traffic needs; this asks, knowing the frames that were dropped too,
//! what the device grants. Every frame that arrived says that the bucket had enough, every lost
//! one that it had not: together they leave a small area of rate and burst. Left out: devices that
//! delay instead of dropping. Rules: `theory::token_bucket`, `theory::gcra`.

mod cells;
mod find;
mod first;
mod ordered;
mod search;

pub use cells::{CellEstimate, MaxBurst, cell_estimate, max_burst};
pub use find::{BucketEstimate, FindError, TrainFrame, even_train, find_bucket, train_by_arrival};
pub use first::{find_first, frames_for_second, is_behind_another};
pub use ordered::{compare, compare_bucket, compare_burst, compare_cells};
pub use search::{PolicerSearch, TrainTrial};
