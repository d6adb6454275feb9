//! Tests of kernel facilities between namespaces; a test that cannot run here prints
//! `skipped: reason`. `./dev test` runs each module in a process of its own.

mod frames;
mod interface_facts;
mod packet_capture;
mod raw_port;
mod support;
mod xdp;
