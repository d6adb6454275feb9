//! Causes that a test over UDP shows: what was offered, what arrived, what was lost.
//!
//! Datagrams do not wait for anybody: a sender that offers more than the path carries sees the rest
//! lost, and one whose datagrams all arrive was the limit itself.

use super::candidate::{Candidate, share_of};
use super::evidence::{Datagrams, Evidence};
use crate::record::{At, Cause, Confidence, DecidingTest, HostAdvice, RemedyLine, Sign, SignKind};

/// Share lost below which all that was sent counts as arrived.
const ALL_ARRIVED: f64 = 1e-3;
/// Share lost from which the offer is above what the path carries.
const OVERLOADED: f64 = 0.01;
/// The rate over what an Ethernet carries, apart by this much at most.
const LINE_RATE: f64 = 0.006;

/// The first cause whose signs are all there.
pub(super) fn first_cause(evidence: &Evidence, datagrams: &Datagrams) -> Option<Candidate> {
    full_ethernet(evidence, datagrams).or_else(|| own_rate(datagrams))
}

/// All arrived: the rate asked for is the limit.
fn own_rate(datagrams: &Datagrams) -> Option<Candidate> {
    let lost = lost_share(datagrams).filter(|lost| *lost < ALL_ARRIVED)?;
    let mut signs = vec![Sign::at_most(SignKind::DatagramsLost, lost, ALL_ARRIVED)];
    signs.extend(datagrams.offered_bps.map(|bps| Sign::figure(SignKind::DatagramRate, bps)));
    let candidate = Candidate::new(Cause::SendingApplication, Confidence::High, signs);
    let remedy = vec![RemedyLine::advice(At::Test, HostAdvice::RaiseRate)];
    let candidate = candidate.mended_by(remedy);
    Some(match datagrams.offered_bps {
        Some(bps) => candidate.allowing(bps),
        None => candidate,
    })
}

/// Datagrams that were lost over those that were sent.
fn lost_share(datagrams: &Datagrams) -> Option<f64> {
    share_of(Some(datagrams.lost), Some(datagrams.sent))
}

/// More was offered than arrived, and what arrived is what an Ethernet of the usual speeds carries.
fn full_ethernet(evidence: &Evidence, datagrams: &Datagrams) -> Option<Candidate> {
    let lost = lost_share(datagrams).filter(|lost| *lost >= ALL_ARRIVED)?;
    let (rate, payload) = (evidence.rate.mean_bps?, datagrams.payload_bytes?);
    // UDP 8, IPv4 20, Ethernet 38 with preamble and gap; the IP packet is one frame.
    let frame = payload + 66.0;
    if frame > 1538.0 {
        return None;
    }
    let lines = [10e6, 100e6, 1e9, 2.5e9, 10e9, 25e9];
    let mut carried = lines.into_iter().map(|line: f64| line * payload / frame);
    let line = carried.find(|line| (rate / line - 1.0).abs() < LINE_RATE)?;
    let signs = vec![
        Sign::figure(SignKind::EthernetCarriesDatagrams, line),
        Sign::at_least(SignKind::ReceivedOverThat, rate / line, 1.0 - LINE_RATE),
        Sign::at_least(SignKind::DatagramsLost, lost, ALL_ARRIVED),
    ];
    let candidate = Candidate::new(Cause::Link, Confidence::Medium, signs).allowing(line);
    Some(candidate)
}

/// Losses that more than one cause explains: signs, causes, and what decides.
pub(super) fn causes_of_loss(datagrams: &Datagrams) -> (Vec<Sign>, Vec<Cause>, DecidingTest) {
    let Some(lost) = lost_share(datagrams) else {
        return (Vec::new(), Vec::new(), DecidingTest::ReceiversResult);
    };
    let mut signs = vec![Sign::at_least(SignKind::DatagramsLost, lost, ALL_ARRIVED)];
    signs.extend(datagrams.offered_bps.map(|bps| Sign::figure(SignKind::DatagramRate, bps)));
    let mut between = vec![Cause::Link, Cause::Shaper, Cause::Policer, Cause::ReceivingHost];
    if lost < OVERLOADED {
        between.insert(0, Cause::RandomLoss);
    }
    (signs, between, DecidingTest::LosslessRate)
}
