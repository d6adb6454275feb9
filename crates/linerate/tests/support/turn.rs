//! Modules of a live test program by turns: tests of one module run beside each other, those of
//! another wait until they are through, so that nothing loads the machine while somebody measures.
//! Helpers take the turn. `./dev test` gives each module a process; this holds for `cargo test`.

use std::cell::RefCell;
use std::sync::{Condvar, Mutex, PoisonError};

/// The module whose turn it is, and how many of its tests run.
static NOW: Mutex<(String, usize)> = Mutex::new((String::new(), 0));
static OVER: Condvar = Condvar::new();

thread_local! {
    static HELD: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

/// A test's part in its module's turn, given back when its thread ends.
struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
        now.1 -= 1;
        OVER.notify_all();
    }
}

/// Waits until no test of another module runs; holds until the thread of this test ends, which has
/// the test's name. A thread that a test starts has none, and goes by its test's turn.
pub(crate) fn take() {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    let Some((module, _)) = name.split_once("::").filter(|_| env!("CARGO_CRATE_NAME") == "live")
    else {
        return;
    };
    HELD.with_borrow_mut(|held| {
        held.get_or_insert_with(|| {
            let now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
            let others = |now: &mut (String, usize)| now.1 > 0 && now.0 != module;
            let mut now = OVER.wait_while(now, others).unwrap_or_else(PoisonError::into_inner);
            now.0.clear();
            now.0.push_str(module);
            now.1 += 1;
            Turn
        });
    });
}
