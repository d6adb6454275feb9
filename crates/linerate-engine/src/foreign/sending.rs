//! Following the senders of a UDP test whose server is another program's.

use std::time::Duration;

use linerate_core::record::{Failure, Fault, UdpTest};
use linerate_sys::clock::{monotonic, sleep};

use crate::flow::Sample;
use crate::flow::tcp::session::LOOK_AT_END;
use crate::flow::udp::client::Told;
use crate::flow::udp::endpoint::Endpoint;

/// After its planned end a sender has this long for its last datagrams.
const GRACE: Duration = Duration::from_secs(10);

/// Called at every look, with samples at the end of an interval; may end the test by a failure.
pub(crate) type Each<'a> =
    &'a mut dyn FnMut(Option<Vec<Sample>>, Told<'_, '_>) -> Result<(), Failure>;

/// Waits until every sender is done or the user stops the test.
pub(crate) fn follow_senders(
    (endpoint, request): (&Endpoint, &UdpTest),
    (context, account): Told<'_, '_>,
    each: Each<'_>,
) -> Result<(), Failure> {
    let begin = account.begin;
    let interval = Duration::from_nanos(request.interval_ns);
    let mut give_up = request.planned_span().map(|span| begin + span + GRACE);
    let (mut tick, mut stopping) = (begin + interval, false);
    while !endpoint.is_done() {
        let now = monotonic();
        let samples = (now >= tick).then(|| endpoint.sample(now));
        if samples.is_some() {
            tick += interval;
        }
        each(samples, (&mut *context, &mut *account))?;
        if context.stop.asked() && !stopping {
            stopping = true;
            endpoint.stop_sending();
            give_up = Some(now + GRACE);
        }
        if give_up.is_some_and(|end| now >= end) {
            let reason = "the last datagrams did not leave in time";
            return Err(Failure::new(Fault::System, "send", "UDP", reason));
        }
        sleep(LOOK_AT_END.min(tick.since(now)));
    }
    Ok(())
}
