//! Tests of the library from outside: the simulated mesh, searches over simulated devices, shares
//! on paths, and the stored forms. Nothing here waits or measures.

mod bench_device;
mod bench_search;
mod corpora;
mod mesh_messages;
mod mesh_simulation;
mod path_statistics;
mod spec;
mod stored_records;
