//! The log of a server: a line on standard error for each event from the level asked for on, with
//! the time in UTC and the client where there is one. Lines below `info` begin with their level. As
//! JSON, an object a line, with the figures of a test.
//!
//! Left out: spans, colours and files; whoever starts a server keeps what it writes.

use std::fmt::{Debug, Write};

use linerate_core::record::one_line;
use linerate_core::time::WallTime;
use linerate_sys::clock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::output;

/// The levels by their names in flags. `error` is a fault that ends the server, `warn` a client
/// that got no result, `info` a test, `debug` a decision, `trace` a message.
pub(crate) const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Format of an event in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// A line for people
    Text,
    /// A JSON object
    Json,
}

/// Writes events from `level` on from now on.
pub(crate) fn install_logger(level: LevelFilter, form: Form) {
    // The first one stays: a process has one log.
    let _ = tracing::subscriber::set_global_default(Log { level, form });
}

struct Log {
    level: LevelFilter,
    form: Form,
}

impl Subscriber for Log {
    fn enabled(&self, event: &Metadata<'_>) -> bool {
        // Libraries tell of each frame, to those who debug libraries.
        *event.level() <= self.level && event.target().starts_with("linerate")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = EventFields::default();
        event.record(&mut words);
        let (now, level) = (clock::wall_time(), *event.metadata().level());
        output::print_note(&match self.form {
            Form::Text => words.text_line(now, level),
            Form::Json => words.json_line(now, level),
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of an event: the client as `peer`, the figures of its test as JSON in `ways`, and its
/// message.
#[derive(Default)]
struct EventFields {
    peer: String,
    ways: String,
    message: String,
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Text cannot fail to be written to.
        let _ = match field.name() {
            "peer" => write!(self.peer, " {value:?}"),
            "ways" => write!(self.ways, "{value:?}"),
            _ => write!(self.message, " {value:?}"),
        };
    }
}

impl EventFields {
    /// `2026-11-22T22:01:01.123Z 192.0.2.1:40000 tcp up: 1 stream, ...`, in UTC (RFC 3339).
    fn text_line(&self, now: WallTime, level: Level) -> String {
        let level = match level {
            Level::DEBUG => " debug:",
            Level::TRACE => " trace:",
            _ => "",
        };
        one_line(&format!("{now}{level}{}{}", self.peer, self.message))
    }

    /// The event as a line of JSON: `{"time":"2026-11-22T22:01:01.123Z","level":"info",
    /// "peer":"192.0.2.1:40000","message":"tcp up: ...","ways":[{"direction":"up","streams":1,
    /// "bytes":...,"seconds":...,"rate_bps":...}]}`.
    fn json_line(&self, now: WallTime, level: Level) -> String {
        let peer = Some(self.peer.trim()).filter(|peer| !peer.is_empty());
        let ways: serde_json::Value = serde_json::from_str(&self.ways).unwrap_or_default();
        let object = serde_json::json!({
            "time": now.to_string(),
            "level": level.as_str().to_lowercase(),
            "peer": peer,
            "message": self.message.trim(),
            "ways": ways,
        });
        object.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_begins_with_the_time_in_utc_and_stays_one_line() {
        // RFC 3339 §5.8: 1985-04-12T23:20:50.52Z is 482196050.52 s after 1970.
        let now = WallTime::from_unix_nanos(482_196_050_520_000_000);
        let message = " refused: a\nb\u{1b}[2J".to_owned();
        let ways = r#"[{"rate_bps":8}]"#.to_owned();
        let words = EventFields { peer: " 192.0.2.1:40000".to_owned(), ways, message };
        let expected = "1985-04-12T23:20:50.520Z 192.0.2.1:40000 refused: a\\nb\\u{1b}[2J";
        assert_eq!(words.text_line(now, Level::INFO), expected);
        assert_eq!(words.text_line(now, Level::DEBUG), expected.replacen(' ', " debug: ", 1));
        let json: serde_json::Value =
            linerate_core::tree::from_json(&words.json_line(now, Level::WARN)).expect("an object");
        assert_eq!(json["time"], "1985-04-12T23:20:50.520Z");
        assert_eq!((&json["level"], &json["peer"]), (&"warn".into(), &"192.0.2.1:40000".into()));
        assert_eq!(json["message"], "refused: a\nb\u{1b}[2J");
        assert_eq!(json["ways"][0]["rate_bps"], 8);
        let quiet = EventFields { message: " wait".to_owned(), ..EventFields::default() };
        assert!(!quiet.json_line(now, Level::WARN).contains('\n'));
    }
}
