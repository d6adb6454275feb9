//! Cutting and keeping, without a kernel.
