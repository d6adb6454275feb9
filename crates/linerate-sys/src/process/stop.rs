//! The wish to stop, from Ctrl-C (SIGINT), SIGTERM or another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{Error, Result};

/// Shared between threads; once asked to stop it stays so.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    /// The signal that set the flag; 0 for none.
    signal: Arc<AtomicUsize>,
}

/// SIGHUP: by custom the wish that a server reads its files again (daemon(7)).
#[derive(Debug)]
pub struct HangUp(Arc<AtomicBool>);

impl HangUp {
    /// From now on SIGHUP is noted instead of ending the process.
    /// # Errors
    /// When the handler cannot be installed.
    pub fn listen() -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, came.clone())
            .map_err(|source| Error::new("install handler for signal", SIGHUP, source))?;
        Ok(Self(came))
    }

    /// Whether it came since the last call.
    pub fn came(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
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
            // Before the flag itself: whoever sees that finds the number.
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, stop.signal.clone(), number)
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

    /// The number of the signal that asked to stop; `None` where none did.
    pub fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Acquire)).ok().filter(|number| *number > 0)
    }

    /// Whether somebody asked to stop.
    #[inline]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
