//! Whether a broker writes to its disk before it says that it has something.

use std::time::Duration;

use async_nats::Client;
use serde_json::Value;

/// Longest wait for a broker's answer about itself.
const WITHIN: Duration = Duration::from_secs(2);

/// A warning about the broker's writes to its disk; none where it syncs each message at once.
/// Messages that it has not synced can be lost with the power; agents then send them again.
pub(super) async fn of_its_disk(client: &Client) -> Option<String> {
    let version = client.server_info().version;
    if is_older(&version, (2, 10)) {
        return Some(format!(
            "nats-server {version} writes to its disk every two minutes and knows no other way \
             (2.10 has sync_interval: always): results stay at their agents until the store has \
             them"
        ));
    }
    let asked = client.request("$SYS.REQ.SERVER.PING.JSZ", r#"{"config":true}"#.into());
    let said = match tokio::time::timeout(WITHIN, asked).await {
        Ok(Ok(answer)) => {
            linerate_core::tree::from_json_bytes(&answer.payload).unwrap_or(Value::Null)
        }
        _ => Value::Null,
    };
    of_answer(&said)
}

/// True for a version before `than`, major and minor number.
fn is_older(version: &str, than: (u32, u32)) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < than
}

/// The warning from an answer to `JSZ` (nats-server's JSInfo), whose intervals are nanoseconds.
fn of_answer(said: &Value) -> Option<String> {
    let config = &said["data"]["config"];
    if config["sync_always"] == Value::Bool(true) {
        return None;
    }
    let every = config["sync_interval"].as_u64().map(Duration::from_nanos);
    Some(match every {
        Some(every) => format!(
            "the broker writes to its disk every {} s: set sync_interval: always in its jetstream \
             block",
            every.as_secs()
        ),
        None => "whether the broker writes to its disk at once cannot be asked by this user: see \
                 that its jetstream block has sync_interval: always"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_writes_at_once_is_good_and_any_other_is_told() {
        let of = |config: Value| of_answer(&serde_json::json!({ "data": { "config": config } }));
        assert_eq!(of(serde_json::json!({"sync_always": true, "sync_interval": 120})), None);
        let told = of(serde_json::json!({"sync_interval": 120_000_000_000_u64}));
        assert!(told.is_some_and(|say| say.contains("every 120 s")));
        assert!(of_answer(&Value::Null).is_some_and(|say| say.contains("cannot be asked")));
        for (version, older) in
            [("2.9.10", true), ("2.10.0", false), ("2.15.2", false), ("x", true)]
        {
            assert_eq!(is_older(version, (2, 10)), older, "{version}");
        }
    }
}
