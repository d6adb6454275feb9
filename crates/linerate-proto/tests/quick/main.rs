//! Tests of the wire formats from outside: captures, corpora for fuzzing, and test frames as other
//! programs read them. Nothing here waits or measures.

mod capture_properties;
mod captures;
mod corpora;
mod intact;
mod test_frame_neighbours;
mod test_frames;
mod test_frames_tcpdump;
