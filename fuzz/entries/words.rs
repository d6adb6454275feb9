//! Any text as an assertion, a unit of the field, or a short form: no panic, an error of one line,
//! a quantity that can be read again as it is printed.

use std::fmt::Display;
use std::str::FromStr;

use linerate_core::assertion::Assertion;
use linerate_core::explain::RateGoal;
use linerate_core::policy::Prefix;
use linerate_core::theory::carrier::Carrier;
use linerate_core::theory::encapsulation::Encapsulation;
use linerate_core::theory::link::LinkTechnology;
use linerate_core::units::{
    BitRate, Bytes, Distance, Fraction, FrameLen, PacketRate, Ratio, parse_span,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(assertion) = read::<Assertion>(text) {
        let again = assertion.to_string().parse::<Assertion>();
        assert_eq!(again.map(|it| it.to_string()), Ok(assertion.to_string()));
    }
    printed::<BitRate>(text);
    printed::<Bytes>(text);
    printed::<FrameLen>(text);
    printed::<PacketRate>(text);
    printed::<Prefix>(text);
    let _ = (read::<Distance>(text), read::<Fraction>(text), read::<Ratio>(text));
    let _ = (read::<RateGoal>(text), read::<Encapsulation>(text));
    let _ = (read::<Carrier>(text), read::<LinkTechnology>(text));
    if let Err(error) = parse_span(text) {
        assert!(!error.to_string().contains('\n'));
    }
}

fn read<T: FromStr>(text: &str) -> Option<T>
where
    T::Err: Display,
{
    let read = text.parse().map_err(|error: T::Err| error.to_string());
    read.map_err(|error| assert!(!error.contains('\n'), "{error}")).ok()
}

fn printed<T: FromStr + Display>(text: &str)
where
    T::Err: Display,
{
    if let Some(value) = read::<T>(text) {
        let shown = value.to_string();
        // The largest of all are rounded up, beyond 64 bits.
        let most = ["16 EiB", "18.45 E"].iter().any(|most| shown.starts_with(most));
        assert!(most || shown.parse::<T>().is_ok(), "{shown}");
    }
}
