//! Bytes or datagrams that the streams of a direction have left to send, where these end the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are left for all streams that share them; without an end in tests by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Option<Arc<AtomicU64>>);

impl Budget {
    /// The budget of a test that ends with so much.
    pub(crate) fn from_amount(amount: Option<u64>) -> Self {
        Self(amount.map(|amount| Arc::new(AtomicU64::new(amount))))
    }

    /// A budget that others may add to.
    pub(crate) const fn of_shared(left: Arc<AtomicU64>) -> Self {
        Self(Some(left))
    }

    /// Takes as much of `wanted` as is left.
    #[inline]
    pub(crate) fn take_up_to(&self, wanted: usize) -> usize {
        let Some(left) = &self.0 else { return wanted };
        let take = |left: u64| left.checked_sub(left.min(wanted as u64));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        usize::try_from(before.unwrap_or(0)).unwrap_or(usize::MAX).min(wanted)
    }

    /// Gives back what was taken and not sent.
    #[inline]
    pub(crate) fn give_back(&self, unsent: usize) {
        if let Some(left) = &self.0 {
            left.fetch_add(unsent as u64, Ordering::Relaxed);
        }
    }
}
