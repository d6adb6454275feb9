//! Round-trip times: ping by ICMP and UDP, and the host's own clocks.
