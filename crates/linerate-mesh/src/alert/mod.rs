//! Alerts on their way: from the store's outbox to each output of a plan.
//!
//! An alert is in the store, with an identifier of its own, before anybody hears of it, and each
//! output is tried until it has taken it. So each gets it at least once, whatever is killed
//! meanwhile: one whose word that it has it was lost gets it again, with the same identifier.

mod command;
mod mail;
mod reply;
mod webhook;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_core::schedule::Alert;
use linerate_outbound::post;
use linerate_store::{DueAlert, Outbox};

/// The first wait after a failure, and the longest, seconds.
const WAIT_S: (i64, i64) = (15, 900);
/// Seconds for which an alert that cannot be delivered is tried again.
const TRIED_S: i64 = 86_400;
/// Most time that one delivery may take.
const TAKES: Duration = Duration::from_secs(60);

/// Destination of an alert: a command, a webhook or a mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AlertOutput {
    Command(String),
    Webhook(String),
    /// A mail to one address; several addresses are several outputs, each tried by itself.
    Mail(mail::MailRoute),
}

impl AlertOutput {
    /// Key of the output in the store's outbox.
    fn outbox_key(&self) -> String {
        match self {
            Self::Command(_) => "command".to_owned(),
            Self::Webhook(_) => "webhook".to_owned(),
            Self::Mail(way) => format!("mail {}", way.to),
        }
    }

    fn deliver_alert(&self, alert: &DueAlert) -> Result<(), String> {
        match self {
            Self::Command(line) => command::run(line, alert),
            Self::Webhook(to) => webhook::post_alert(to, alert, None),
            Self::Mail(way) => mail::send_mail(way, alert),
        }
    }
}

fn outputs_of(alert: &Alert) -> Vec<AlertOutput> {
    let command = alert.command.iter().cloned().map(AlertOutput::Command);
    let webhook = alert.webhook.iter().cloned().map(AlertOutput::Webhook);
    let way = |to: &String| {
        AlertOutput::Mail(mail::MailRoute {
            to: to.clone(),
            from: alert.mail_from.clone().unwrap_or_default(),
            relay: alert.relay.clone().unwrap_or_else(|| mail::RELAY.to_owned()),
        })
    };
    command.chain(webhook).chain(alert.mail.iter().map(way)).collect()
}

/// Checks that this program can use each output of a plan.
/// # Errors
/// One line where one cannot.
pub fn check_outputs(alert: &Alert) -> Result<(), String> {
    alert.webhook.as_deref().map_or(Ok(()), post::check_url)?;
    alert.relay.as_deref().map_or(Ok(()), mail::check_relay)
}

/// Result of one delivery of an alert to an output.
#[derive(Debug)]
struct AlertDelivery {
    id: String,
    output: String,
    tries: u32,
    made_s: i64,
    result: Result<(), String>,
}

/// Delivers the alerts that the outbox has of one owner, one at a time for each output.
#[derive(Debug)]
pub(crate) struct Post {
    owner: String,
    outputs: Vec<AlertOutput>,
    busy: Vec<String>,
    told: (Sender<AlertDelivery>, Receiver<AlertDelivery>),
}

impl Post {
    /// Delivery to the outputs of a plan's `[alert]`; without one nothing is delivered.
    pub(crate) fn new(owner: String, alert: Option<&Alert>) -> Self {
        let outputs = alert.map(outputs_of).unwrap_or_default();
        Self { owner, outputs, busy: Vec::new(), told: channel() }
    }

    /// True where the plan has at least one output.
    pub(crate) const fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Keys of the outputs in the store's outbox.
    pub(crate) fn output_keys(&self) -> Vec<String> {
        self.outputs.iter().map(AlertOutput::outbox_key).collect()
    }

    /// Keeps what became of the last ones, and begins with the next.
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn deliver_due_alerts(
        &mut self,
        store: &mut dyn Outbox,
        now_s: i64,
        say: &dyn Fn(&str),
    ) -> Result<(), Failure> {
        while let Ok(told) = self.told.1.try_recv() {
            self.busy.retain(|output| *output != told.output);
            match &told.result {
                Ok(()) => store.alert_told(&told.id, &told.output, now_s)?,
                Err(reason) => {
                    let next_s = next_try(told.tries, told.made_s, now_s);
                    let then = if next_s.is_some() { "tried again" } else { "given up" };
                    say(&format!("alert not handed on by {}, {then}: {reason}", told.output));
                    store.alert_failed(&told.id, &told.output, next_s, reason)?;
                }
            }
        }
        for output in &self.outputs {
            let word = output.outbox_key();
            if self.busy.contains(&word) {
                continue;
            }
            let Some(alert) = store.alert_due(&self.owner, &word, now_s)? else { continue };
            self.busy.push(word.clone());
            let (output, told) = (output.clone(), self.told.0.clone());
            std::thread::spawn(move || {
                let result = output.deliver_alert(&alert);
                let DueAlert { id, at_s: made_s, tries, .. } = alert;
                // A post that is gone finds it in the outbox again.
                let _ = told.send(AlertDelivery { id, output: word, tries, made_s, result });
            });
        }
        Ok(())
    }
}

/// Time of the next try after a failure with `tries` failures before it, seconds since 1970-01-01
/// UTC; none once the alert is a day old.
fn next_try(tries: u32, made_s: i64, now_s: i64) -> Option<i64> {
    let wait = (WAIT_S.0 << tries.min(10)).min(WAIT_S.1);
    (now_s - made_s < TRIED_S).then_some(now_s + wait)
}

#[cfg(test)]
mod tests;
