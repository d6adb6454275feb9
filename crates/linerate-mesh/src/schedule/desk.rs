//! Runs beside the calendar that a keeper is given: each is looked at once.

use std::collections::BTreeSet;

use linerate_core::mesh::{Booking, HOUR_S};
use linerate_core::schedule::ScheduleTask;

/// Bookings that are looked at in an hour: half an hour of the shortest slots, and as many that are
/// refused.
const LOOKED_MAX: usize = 600;
/// Identifiers that are remembered; those that are forgotten have their rows.
const SEEN_MAX: usize = 20_000;

/// The begin of a booked run, with its task's name.
pub type BookedAt = (String, i64);

/// Checks a booking beside the runs that are known: returns the task to run, or the reason of a
/// refusal.
pub type Admit = dyn Fn(&Booking, &[BookedAt]) -> Result<ScheduleTask, String> + Send + Sync;

/// Bookings of a keeper: those it admitted, refused and has seen.
#[derive(Default)]
pub struct Desk {
    /// Rule that admits a booking; none where nothing can be booked.
    pub admit: Option<Box<Admit>>,
    seen: BTreeSet<String>,
    /// Hour of the last bookings that were looked at, and their number in it.
    looked: (i64, usize),
    taken: Vec<BookedAt>,
    /// Refused bookings with the reason; each is recorded as missed once its begin has come.
    refused: Vec<(BookedAt, String)>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seen, taken, .. } = self;
        f.debug_struct("Desk").field("seen", seen).field("taken", taken).finish_non_exhaustive()
    }
}

impl Desk {
    /// A desk that admits bookings by a rule.
    pub fn new(admit: Box<Admit>) -> Self {
        Self { admit: Some(admit), ..Self::default() }
    }

    /// True for a booking that was not looked at before. At most `LOOKED_MAX` are in an hour: each
    /// gets a row in the store.
    pub(super) fn is_new(&mut self, id: &str, now_s: i64) -> bool {
        let hour = now_s.div_euclid(HOUR_S);
        if self.looked.0 != hour {
            self.looked = (hour, 0);
        }
        if self.admit.is_none() || self.looked.1 >= LOOKED_MAX || self.seen.contains(id) {
            return false;
        }
        self.looked.1 += 1;
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        self.seen.insert(id.to_owned())
    }

    /// Admits a booking beside runs that were begun and those that were admitted, or refuses it.
    pub(super) fn admit_booking(
        &mut self,
        booking: &Booking,
        begun: &[BookedAt],
    ) -> Result<ScheduleTask, String> {
        let Some(admit) = &self.admit else { return Err("nothing can be booked".to_owned()) };
        let mut known = self.taken.clone();
        known.extend(begun.iter().filter(|run| !self.taken.contains(run)).cloned());
        let task = admit(booking, &known)?;
        self.taken.push((booking.task.clone(), booking.start_s));
        Ok(task)
    }

    /// Remembers that a booking was refused, and why; it is recorded once its begin has come.
    pub(super) fn refuses(&mut self, booking: &Booking, reason: String) {
        self.refused.push(((booking.task.clone(), booking.start_s), reason));
    }

    /// Takes the refused bookings whose begin has come, each with its reason.
    pub(super) fn take_due_refusals(&mut self, now_s: i64) -> Vec<(BookedAt, String)> {
        self.refused.extract_if(.., |((_, start_s), _)| *start_s <= now_s).collect()
    }

    /// Forgets runs before a time.
    pub(super) fn forgets(&mut self, before_s: i64) {
        self.taken.retain(|(_, start_s)| *start_s >= before_s);
    }
}
