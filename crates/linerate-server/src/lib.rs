//! The other end and the memory of linerate: the listener with its limits, and the store.
