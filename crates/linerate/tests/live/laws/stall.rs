//! For how long this host keeps a thread waiting that is due: a thread that sleeps for 2 ms again
//! and again, and remembers by how much it woke late. What a program does late in that time is the
//! host's doing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_sys::clock;

const NAP: Duration = Duration::from_millis(2);
/// Wakings later than this are kept.
const NOTABLE: Duration = Duration::from_millis(1);

type Late = Vec<(MonoTime, f64)>;

/// Watches until it is dropped.
pub(crate) struct Stalls {
    late: Arc<Mutex<Late>>,
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Stalls {
    /// Begins.
    pub(crate) fn watch() -> Self {
        let (late, stop) = (Arc::<Mutex<Late>>::default(), Arc::new(AtomicBool::new(false)));
        let (kept, asked) = (Arc::clone(&late), Arc::clone(&stop));
        let watcher = std::thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                let due = clock::monotonic() + NAP;
                clock::sleep_until(due);
                let now = clock::monotonic();
                let by = now.duration_since(due);
                if by > NOTABLE {
                    kept.lock().expect("nobody panics with it").push((now, by.as_secs_f64()));
                }
            }
        });
        Self { late, stop, watcher: Some(watcher) }
    }

    /// The longest wait that ended within a span, in seconds.
    pub(crate) fn longest(&self, from: MonoTime, to: MonoTime) -> f64 {
        let late = self.late.lock().expect("nobody panics with it");
        let within = late.iter().filter(|(at, _)| (from..=to).contains(at));
        within.map(|(_, by)| *by).fold(0.0, f64::max)
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}
