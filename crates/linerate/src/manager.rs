//! What the service manager that started this program is told (sd_notify(3)).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_sys::service;
use linerate_sys::stop::Stop;

/// True once the service manager was told that the program stops.
static ENDS: AtomicBool = AtomicBool::new(false);
/// Interval at which the stop flag is read.
const LOOK: Duration = Duration::from_millis(100);

/// Sends a state to the service manager, where one started this program and waits for it.
pub(crate) fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = service::notify(&socket, state) {
        tracing::warn!("the service manager was not told {state}: {error}");
    }
}

/// Reports that the program has begun, and its end as soon as it is stopped, for running tests may
/// take longer.
pub(crate) fn tell_of_begin_and_end(stop: &Stop) {
    notify("READY=1");
    let stop = stop.clone();
    std::thread::spawn(move || tell_of_the_end(&stop));
}

/// Waits until the program is to end.
pub(crate) fn tell_of_the_end(stop: &Stop) {
    while !stop.is_requested() {
        linerate_sys::clock::sleep(LOOK);
    }
    report_stopping(stop);
}

/// Reports the end of the program once, from this thread or from the one that waits for it.
pub(crate) fn report_stopping(stop: &Stop) {
    if stop.is_requested() && !ENDS.swap(true, Ordering::SeqCst) {
        notify("STOPPING=1");
    }
}
