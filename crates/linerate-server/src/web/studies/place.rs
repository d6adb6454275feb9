//! The one place for a study: which run has it, and what the last one had to say.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use linerate_sys::stop::Stop;

use crate::web::error::ApiError;

/// The run that is measured here now, and what the last one had to say.
#[derive(Debug, Default)]
pub(crate) struct Studies(Mutex<Now>);

#[derive(Debug, Default)]
pub(super) struct Now {
    pub(super) run: Option<(String, Stop)>,
    /// Identifier of the last run, and the last line of its output, where it failed.
    pub(super) said: Option<(String, String)>,
}

impl Studies {
    pub(super) fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True where no study is measured now.
    pub(crate) fn all_over(&self) -> bool {
        self.lock().run.is_none()
    }

    /// Takes the one place, unless another run has it.
    pub(super) fn take_place(&self, run: &str) -> Result<Stop, ApiError> {
        let mut now = self.lock();
        if let Some((other, _)) = &now.run {
            let say = format!("run {} of a study is measured now, one at a time", short_id(other));
            return Err(ApiError::new(StatusCode::CONFLICT, "busy", say));
        }
        let stop = Stop::new();
        now.run = Some((run.to_owned(), stop.clone()));
        now.said = None;
        Ok(stop)
    }

    /// Gives the place back; `said` is why it failed.
    pub(super) fn release_place(&self, said: Option<String>) {
        let mut now = self.lock();
        if let Some((run, _)) = now.run.take() {
            now.said = said.map(|said| (run, said));
        }
    }
}

/// An identifier as programs show it.
pub(super) fn short_id(run: &str) -> &str {
    run.get(..13).unwrap_or(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_the_place_until_it_is_over() {
        let studies = Studies::default();
        assert!(studies.all_over());
        assert!(studies.take_place("one").is_ok());
        let refused = studies.take_place("two").expect_err("one at a time");
        assert_eq!(refused.status, StatusCode::CONFLICT);
        studies.release_place(Some("no room".to_owned()));
        assert!(studies.all_over());
        assert_eq!(studies.lock().said, Some(("one".to_owned(), "no room".to_owned())));
        assert!(studies.take_place("two").is_ok());
        assert_eq!(studies.lock().said, None, "the last words are of the last run");
    }
}
