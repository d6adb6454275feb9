//! The wire with bytes recorded from iperf3 3.12, cut and damaged, and the machines in and out of
//! order.

use super::*;
