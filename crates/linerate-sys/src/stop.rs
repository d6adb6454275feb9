//! The wish to stop, from Ctrl-C (SIGINT), SIGTERM or another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{Error, Result};

/// Shared between threads; once asked to stop it stays so.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// A flag that nobody has set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that SIGINT and SIGTERM set. A second signal ends the process at once with 130.
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> Result<Self> {
        let stop = Self::new();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, stop.asked.clone())
                .map_err(|source| Error::new("install handler for signal", signal, source))?;
            signal_hook::flag::register(signal, stop.asked.clone())
                .map_err(|source| Error::new("install handler for signal", signal, source))?;
        }
        Ok(stop)
    }

    /// Asks to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether somebody asked to stop.
    #[inline]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
