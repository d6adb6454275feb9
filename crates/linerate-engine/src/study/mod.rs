//! Studies: a grid of measurements over laboratories, resumable.
