//! A test with `iperf -s`: streams that begin with a header, and the server's answer to it.
//!
//! Both directions at once go over the same connections (`--full-duplex` of iperf 2.1 and newer);
//! the connections back of `-d` and `-r` are the personality's business.

use std::io::Write;
use std::time::Duration;

use linerate_core::record::{
    Direction, Failure, Fault, Finish, Record, Side, TcpDirections, TcpPlan, TcpTest,
};
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{ANSWER_BYTES, Amount, Answer, ClientHeader, Mode, pattern};
use linerate_sys::clock::monotonic;

use crate::context::Context;
use crate::failure::words_of;
use crate::flow::account::Account;
use crate::flow::tcp::client::run_by;
use crate::flow::tcp::endpoint::{Manner, share};
use crate::foreign::test::{Test, refuse, remote_end};

/// The manner of iperf 2: digits, and no report over TCP.
pub(crate) const MANNER: Manner =
    Manner { content: pattern, one_sided: true, shares: true, dealt: false };

/// Longest buffer that a server of iperf 2 may be asked to write: its own default.
const SERVER_BUFFER_MAX: u32 = 128 << 10;

/// A server that sends for a time closes this much before it at the earliest: it begins when it has
/// the header, and rounds to hundredths.
const EARLY: Duration = Duration::from_millis(200);

/// After the last acknowledgement a server closes within this time, as far as anybody waits.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection back, on which the server sends (`-d`, `-r` of iperf 2). The caller listens.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// At the same time, and not afterwards.
    pub at_once: bool,
    /// The port where the caller listens.
    pub port: u16,
}

/// Measures with a server of iperf 2.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mode = match plan.test.directions {
        TcpDirections::Up => Mode::Forward,
        TcpDirections::Down => Mode::Reverse,
        TcpDirections::Both => Mode::FullDuplex,
    };
    measure_in(Way { mode, listen_port: plan.port }, plan, (context, account))
}

/// Measures from here to a server of iperf 2, and asks it to send on a connection of its own to the
/// caller; the record is that of the way there.
pub fn run_with_return(plan: &TcpPlan, back: Return, context: &mut Context<'_>) -> Record {
    let mode = if back.at_once { Mode::Dual } else { Mode::TradeOff };
    let plan = TcpPlan {
        test: TcpTest { directions: TcpDirections::Up, ..plan.test.clone() },
        ..plan.clone()
    };
    let way = Way { mode, listen_port: back.port };
    run_by(&plan, context, |context, account| measure_in(way, &plan, (context, account)))
}

/// Who sends, and where this end listens.
#[derive(Clone, Copy, Debug)]
struct Way {
    mode: Mode,
    listen_port: u16,
}

impl Way {
    /// Data goes to the server alone on the client's connections.
    const fn is_forward(self) -> bool {
        matches!(self.mode, Mode::Forward | Mode::Dual | Mode::TradeOff)
    }
}

fn measure_in(
    way: Way,
    plan: &TcpPlan,
    (context, account): (&mut Context<'_>, &mut Account),
) -> Result<(), Failure> {
    let mut test = Test::of(plan, MANNER, account)?;
    let mut asked = monotonic();
    for flow in 0..plan.test.streams {
        asked = monotonic();
        connect(&mut test, (way, flow), plan, account)?;
    }
    test.connected(plan, context);
    let result = test.start(account).and_then(|()| test.follow(context, account, &mut |_| Ok(())));
    let result = match context.stop.asked() || way.is_forward() {
        true => result,
        false => result.and_then(|()| test.has_all_of_server(asked, EARLY)),
    };
    let answered = way.is_forward() && result.is_ok();
    let answer = answered
        .then(|| test.rest_of(0, ANSWER_BYTES, monotonic() + CLOSE_TIMEOUT))
        .and_then(|bytes| Answer::parse(&bytes));
    account.ends.push(remote_end(answer.map(|answer| format!("iperf {}", answer.version))));
    if answered {
        drain(&test);
    }
    test.finish(result, account)
}

/// Takes what is left on every stream, so that closing does not reset it under the last bytes.
fn drain(test: &Test) {
    let until = monotonic() + CLOSE_TIMEOUT;
    for stream in 0..test.sockets.len() {
        test.rest_of(stream, 4 * ANSWER_BYTES, until);
    }
}

fn connect(
    test: &mut Test,
    (way, flow): (Way, u16),
    plan: &TcpPlan,
    account: &mut Account,
) -> Result<(), Failure> {
    let header = header(way, flow, plan)?.to_bytes();
    account.head_bytes = header.len() as u64;
    let side = if way.mode == Mode::Reverse { Side::Receiver } else { Side::Sender };
    let socket = test.connect(test.server, side)?;
    let lost = |error: std::io::Error| {
        let server = test.server.to_string();
        Failure::new(Fault::Unreachable, "open data stream to", server, words_of(&error))
    };
    match way.mode {
        Mode::Reverse => {
            (&socket).write_all(&header).map_err(lost)?;
            test.add(socket, (Direction::Down, flow), account);
        }
        Mode::FullDuplex => {
            let back = socket.try_clone().map_err(lost)?;
            test.add(back, (Direction::Down, flow), account);
            test.add(socket, (Direction::Up, flow), account);
            test.endpoint.begin_with(header.to_vec());
        }
        Mode::Forward | Mode::Dual | Mode::TradeOff => {
            test.add(socket, (Direction::Up, flow), account);
            test.endpoint.begin_with(header.to_vec());
        }
    }
    Ok(())
}

/// The header of one stream. Its amount is that stream's own.
fn header(way: Way, flow: u16, plan: &TcpPlan) -> Result<ClientHeader, Failure> {
    let amount = match plan.test.finish {
        Finish::TimeNs(ns) => time(ns.saturating_add(plan.test.omit_ns))?,
        Finish::Bytes(bytes) => own_amount(bytes, flow, plan)?,
        Finish::Buffers(count) => {
            own_amount(count.saturating_mul(plan.test.buffer_bytes.into()), flow, plan)?
        }
    };
    Ok(ClientHeader {
        threads: plan.test.streams.into(),
        listen_port: way.listen_port,
        // iperf 2.1.8 writes beyond its own buffer of 128 KiB when a header asks for more.
        buffer_bytes: if plan.test.buffer_bytes <= SERVER_BUFFER_MAX {
            plan.test.buffer_bytes
        } else {
            0
        },
        rate_bps: plan.test.pace.map_or(0, BitRate::bits_per_sec),
        service_type: plan.test.dscp.unwrap_or(0) << 2,
        window: plan.test.window_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0),
        ..ClientHeader::new(way.mode, amount)
    })
}

/// Hundredths of a second, rounded up: the server is not to end before this end does.
pub(super) fn time(ns: u64) -> Result<Amount, Failure> {
    let centiseconds = u32::try_from(ns.div_ceil(10_000_000)).ok();
    let fits = centiseconds.filter(|count| *count <= 1 << 31);
    fits.map(Amount::Centiseconds)
        .ok_or_else(|| refuse("iperf 2 has no room for a time of 248 days or more".to_owned()))
}

/// The bytes of one stream of all.
fn own_amount(bytes: u64, flow: u16, plan: &TcpPlan) -> Result<Amount, Failure> {
    let own = share(bytes, flow, plan.test.streams);
    let fits = u32::try_from(own).ok().filter(|own| (60..1 << 31).contains(own));
    fits.map(Amount::Bytes).ok_or_else(|| {
        refuse(format!("{own} bytes of a stream; iperf 2 has room for 60 … 2,147,483,647"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shared_out_so_that_none_is_lost() {
        let plan =
            TcpPlan { test: TcpTest { streams: 3, ..TcpTest::default() }, ..TcpPlan::default() };
        let own = |flow| own_amount(1000, flow, &plan).expect("enough for a header");
        assert_eq!([own(0), own(1), own(2)], [334, 333, 333].map(Amount::Bytes));
        assert!(own_amount(100, 0, &plan).is_err(), "34 bytes hold no header");
        assert!(own_amount(3 << 31, 0, &plan).is_err());
    }

    #[test]
    fn a_time_is_rounded_up_to_hundredths_of_a_second() {
        assert_eq!(time(1_000_000_001).ok(), Some(Amount::Centiseconds(101)));
        assert_eq!(time(1_000_000_000).ok(), Some(Amount::Centiseconds(100)));
        assert!(time(u64::MAX).is_err());
    }
}
