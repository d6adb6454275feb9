//! What links, windows, losses and queues allow. Each formula gives its source and range.
pub mod access;
pub mod atm;
pub mod carrier;
pub mod encapsulation;
pub mod esp;
pub mod framing;
pub mod link;
pub mod ppp;
pub mod propagation;
pub mod sheet;
pub mod sonet;
pub mod stack;
pub mod wifi;
pub mod window;
