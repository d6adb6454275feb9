//! An agent behind NAT as the measured one: at the slots in which another such measures it, it goes
//! to the third where both meet, and reflects.

use std::time::Duration;

use linerate_core::mesh::{MeetAt, ROOM_S};
use linerate_core::schedule::Calendar;
use linerate_engine::rtt::meet::{Rendezvous, reflect};
use linerate_proto::meet::MeetKey;
use linerate_proto::stamp::ReflectorOptions;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

use super::clock::now_s;
use crate::schedule::Rein;

/// Time between two looks at the calendar.
const LOOK: Duration = Duration::from_millis(200);
/// Seconds before a slot at which the measured agent comes to the meeting host: the measuring
/// agent's clock may be ahead of this one.
const EARLY_S: i64 = 2;

/// Reflects probes in each slot of the calendar, until `over`. A slot's task is an index of
/// `places`.
pub(super) fn reflect_in_slots(
    places: &[MeetAt],
    calendar: &Calendar,
    rein: &Rein,
    over: &Stop,
    say: fn(&str),
) {
    if places.is_empty() {
        return;
    }
    let mut begun_s = now_s();
    std::thread::scope(|scope| {
        while !over.is_requested() {
            let until_s = now_s() + EARLY_S;
            // A clock that was set back does not begin what it had begun.
            if until_s > begun_s && !rein.is_double() {
                for slot in calendar.slots_between(begun_s + 1, until_s + 1) {
                    let (place, for_s) = (&places[slot.task], slot.until_s - now_s() - ROOM_S / 2);
                    scope.spawn(move || answer(place, for_s, over, say));
                }
            }
            begun_s = begun_s.max(until_s);
            sleep(LOOK);
        }
    });
}

/// Reflects for so many seconds; the one that measures says what came of it.
fn answer(place: &MeetAt, for_s: i64, over: &Stop, say: fn(&str)) {
    let span = Duration::from_secs(u64::try_from(for_s).unwrap_or(0));
    let at = Rendezvous { third: place.third, key: MeetKey::from_word(&place.word), wait: span };
    let options = ReflectorOptions::default();
    if let Err(failure) = reflect(&at, options, Some(monotonic() + span), over) {
        say(&format!("reflects for nobody: {failure}"));
    }
}
