//! Ends what still runs inside a laboratory that has ended.

use std::time::Duration;

use linerate_sys::{clock, netns};

/// Time between asking and killing; a shell passes the request on to its jobs.
const GRACE: Duration = Duration::from_millis(500);
/// Time between two looks for processes inside.
const LOOK: Duration = Duration::from_millis(10);
/// Longest time for killing; processes may be started while others are killed.
const KILLING: Duration = Duration::from_secs(2);

/// Ends every process whose network namespace is one of these: asked first, killed half a second
/// later. Returns at once when nobody is inside, and after two and a half seconds at the latest.
pub fn end_processes_inside(namespaces: &[u64]) {
    for process in netns::processes_inside(namespaces) {
        process.hang_up();
    }
    wait_for_empty(namespaces, GRACE, |_| {});
    wait_for_empty(namespaces, KILLING, netns::Process::kill);
}

/// Looks until nobody is inside or the time is over, and does something to everybody it sees.
fn wait_for_empty(namespaces: &[u64], span: Duration, act: impl Fn(&netns::Process)) {
    let end = clock::monotonic() + span;
    loop {
        let inside = netns::processes_inside(namespaces);
        if inside.is_empty() || clock::monotonic() > end {
            return;
        }
        inside.iter().for_each(&act);
        clock::sleep(LOOK);
    }
}
