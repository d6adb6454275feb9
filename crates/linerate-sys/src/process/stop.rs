//! Stop flag, set by Ctrl-C (SIGINT), SIGTERM or another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{Error, Result};

/// Stop flag shared between threads; once set it stays set.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    /// Number of the signal that set the flag; 0 for none.
    signal: Arc<AtomicUsize>,
}

/// Flag for SIGHUP, by convention the request to reload configuration files (daemon(7)).
#[derive(Debug)]
pub struct HangUp(Arc<AtomicBool>);

impl HangUp {
    /// Installs a handler, so that SIGHUP sets the flag instead of ending the process.
    /// # Errors
    /// When the handler cannot be installed.
    pub fn listen() -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, came.clone())
            .map_err(|source| Error::new("install handler for signal", SIGHUP, source))?;
        Ok(Self(came))
    }

    /// True if SIGHUP has arrived since the last call.
    pub fn take_signal(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that SIGINT and SIGTERM set. A second signal ends the process with exit code 130.
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> Result<Self> {
        let stop = Self::new();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, stop.asked.clone())
                .map_err(|source| Error::new("install handler for signal", signal, source))?;
            // Before the flag, so that the number is set when the flag is seen.
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, stop.signal.clone(), number)
                .map_err(|source| Error::new("install handler for signal", signal, source))?;
            signal_hook::flag::register(signal, stop.asked.clone())
                .map_err(|source| Error::new("install handler for signal", signal, source))?;
        }
        Ok(stop)
    }

    /// Sets the flag.
    pub fn request_stop(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Number of the signal that set the flag; `None` where none did.
    pub fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Acquire)).ok().filter(|number| *number > 0)
    }

    /// True once the flag is set.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
