//! One round: so many datagrams down and up at the same time, paced, and what became of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_core::stats::PacketArrival;
use linerate_core::time::MonoTime;
use linerate_proto::datagrams::{Datagram, DatagramRoundRequest, REPORT_BYTES_MAX, Report};
use linerate_sys::clock::monotonic;
use tokio::time::MissedTickBehavior;
use wtransport::{Connection, RecvStream, SendStream};

use super::fate::OneWayCounts;
use super::round_result::RoundResult;

/// Rounds of a session, all in all.
const ROUNDS_MAX: usize = 8;
/// A client has this long for what it asks, and for its report after the last datagram.
const ASK_WITHIN: Duration = Duration::from_secs(5);
const REPORT_WITHIN: Duration = Duration::from_secs(10);
/// A busy host may be late by a quarter of a round, and by this much in a short one.
const LATE: Duration = Duration::from_secs(3);
/// Arrivals of a round whose ask is still on the way, as after a loss: it may take seconds.
const EARLY_MAX: usize = 1000;
/// Once the report is there, what waits in this host's own queues comes within this each time.
const DRAINED: Duration = Duration::from_millis(50);
const DRAINED_LOOKS: usize = 40;

/// Datagrams that came up, by their rounds.
#[derive(Debug)]
pub(super) struct DatagramRounds {
    zero: MonoTime,
    came: Mutex<HashMap<u8, RoundArrivals>>,
}

#[derive(Debug)]
struct RoundArrivals {
    asked: bool,
    most: usize,
    arrivals: Vec<PacketArrival>,
}

impl Default for RoundArrivals {
    fn default() -> Self {
        Self { asked: false, most: EARLY_MAX, arrivals: Vec::new() }
    }
}

impl DatagramRounds {
    pub(super) fn new() -> Self {
        Self { zero: monotonic(), came: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u8, RoundArrivals>> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a datagram that came now; it may be there before the ask for its round.
    pub(super) fn take_datagram(&self, octets: &[u8]) {
        let received_ns = monotonic().nanos_since(self.zero);
        let Some(datagram) = Datagram::parse(octets) else { return };
        let mut came = self.lock();
        if came.len() >= ROUNDS_MAX && !came.contains_key(&datagram.round) {
            return;
        }
        let of = came.entry(datagram.round).or_default();
        if of.arrivals.len() >= of.most {
            return;
        }
        let delay_ns = delay_ns(datagram.sent_us, received_ns / 1000);
        let sequence = u64::from(datagram.number);
        of.arrivals.push(PacketArrival { sequence, received_ns, delay_ns });
    }

    /// Waits for the datagrams of a round; not of one that there was, nor of one too many.
    fn open_round(&self, ask: &DatagramRoundRequest) -> Result<(), &'static str> {
        let mut came = self.lock();
        if came.len() >= ROUNDS_MAX && !came.contains_key(&ask.round) {
            return Err("a session has 8 rounds");
        }
        let of = came.entry(ask.round).or_default();
        if std::mem::replace(&mut of.asked, true) {
            return Err("there was a round of this number");
        }
        // Each may come twice.
        of.most = 2 * ask.count as usize;
        Ok(())
    }

    fn arrival_count(&self, round: u8) -> usize {
        self.lock().get(&round).map_or(0, |arrival| arrival.arrivals.len())
    }

    /// Waits for what has come and was not yet taken in: a report may overtake it in this host.
    async fn wait_for_late(&self, round: u8) {
        let mut count = self.arrival_count(round);
        for _ in 0..DRAINED_LOOKS {
            tokio::time::sleep(DRAINED).await;
            let now = self.arrival_count(round);
            if std::mem::replace(&mut count, now) == now {
                return;
            }
        }
    }

    fn upload_counts(&self, round: u8, sent: u32) -> OneWayCounts {
        let came = self.lock();
        OneWayCounts::from_arrivals(
            sent.into(),
            came.get(&round).map_or(&[], |arrival| &arrival.arrivals),
        )
    }
}

/// One way's delay between two clocks, good for differences alone.
fn delay_ns(sent_us: u64, came_us: u64) -> i64 {
    // Both are below 2⁵³ (`datagrams`), so the difference fits; a nonsense of 285 years is cut.
    (came_us as i64 - sent_us as i64).saturating_mul(1000)
}

/// Serves a round from its ask to its result, and says it to the client.
/// # Errors
/// What is wrong with the client's part, or that it left.
pub(super) async fn serve_round(
    connection: &Connection,
    mut send: SendStream,
    mut recv: RecvStream,
    rounds: &DatagramRounds,
    rate_bps: Option<u64>,
) -> Result<RoundResult, String> {
    let mut octets = [0; DatagramRoundRequest::BYTES];
    let asked = tokio::time::timeout(ASK_WITHIN, recv.read_exact(&mut octets)).await;
    asked.map_err(|_| "nothing was asked for")?.map_err(|error| error.to_string())?;
    let ask = DatagramRoundRequest::parse(&octets).map_err(|error| error.to_string())?;
    let bps = u64::from(ask.bytes) * 8 * 1_000_000 / u64::from(ask.interval_us);
    if rate_bps.is_some_and(|most| bps > most) {
        return Err(format!("{bps} bit/s are above the rate of its rule"));
    }
    rounds.open_round(&ask)?;
    let span = Duration::from_micros(u64::from(ask.interval_us) * u64::from(ask.count));
    let begin = monotonic();
    // What is not sent by then was not sent.
    let last = span + LATE.max(span / 4);
    let end = last + REPORT_WITHIN;
    let mut sent_us = Vec::new();
    let sending = async {
        let _ = tokio::time::timeout(last, send_all(connection, &ask, rounds, &mut sent_us)).await;
        std::future::pending::<std::convert::Infallible>().await
    };
    let octets = tokio::select! {
        read = tokio::time::timeout(end, read_to_end(&mut recv)) => {
            read.map_err(|_| "no report came".to_owned())??
        }
        never = sending => match never {},
    };
    let report = Report::parse(&octets, ask.count).map_err(|error| error.to_string())?;
    let down = OneWayCounts::from_arrivals(sent_us.len() as u64, &came_down(&report, &sent_us));
    rounds.wait_for_late(ask.round).await;
    let up = rounds.upload_counts(ask.round, report.sent);
    let planned = (begin, begin + span);
    let result = RoundResult { round: ask.round, down, up, bytes: ask.bytes, planned };
    let text = linerate_core::tree::to_json(&result).map_err(|error| error.to_string())?;
    send.write_all(text.as_bytes()).await.map_err(|error| error.to_string())?;
    send.finish().await.map_err(|error| error.to_string())?;
    Ok(result)
}

/// Arrivals that the client reports of the datagrams that left at these times.
fn came_down(report: &Report, sent_us: &[u64]) -> Vec<PacketArrival> {
    let arrival = |seen: &linerate_proto::datagrams::DatagramArrival| {
        let sent_us = sent_us.get(seen.number as usize)?;
        let delay_ns = delay_ns(*sent_us, seen.came_us);
        let received_ns = seen.came_us.saturating_mul(1000);
        Some(PacketArrival { sequence: seen.number.into(), received_ns, delay_ns })
    };
    report.seen.iter().filter_map(arrival).collect()
}

async fn send_all(
    connection: &Connection,
    ask: &DatagramRoundRequest,
    rounds: &DatagramRounds,
    sent_us: &mut Vec<u64>,
) {
    let every = Duration::from_micros(ask.interval_us.into());
    let mut turn = tokio::time::interval(every);
    // Late ones do not follow each other at once: that would be a burst of our own making.
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..ask.count {
        turn.tick().await;
        let now_us = monotonic().nanos_since(rounds.zero) / 1000;
        let datagram = Datagram { round: ask.round, number, sent_us: now_us };
        if connection.send_datagram(datagram.padded_bytes(ask.bytes.into())).is_err() {
            return;
        }
        sent_us.push(now_us);
    }
}

async fn read_to_end(recv: &mut RecvStream) -> Result<Vec<u8>, String> {
    let mut octets = Vec::new();
    let mut piece = [0; 4096];
    while let Some(count) = recv.read(&mut piece).await.map_err(|error| error.to_string())? {
        octets.extend(&piece[..count]);
        if octets.len() > REPORT_BYTES_MAX {
            return Err(format!("a report above {REPORT_BYTES_MAX} bytes"));
        }
    }
    Ok(octets)
}
