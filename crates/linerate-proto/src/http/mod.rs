//! HTTP/1.1 (RFC 9112) as far as throughput tests need: parses heads of requests, writes heads of
//! responses.
//!
//! `linerate-server` handles all other requests of a browser. Left out: chunked bodies, whose
//! framing would be counted as payload, and HTTP/2 and later, where several streams share a
//! connection. `spec/http.md` has the paths and their responses.

mod code;
mod head;
mod load;
mod ndt7;
mod throughput1;
mod visitor;
mod websocket;

pub use code::three_digits;
pub use head::{HEAD_BYTES_MAX, Head, HeadError, Start, start_of};
pub use load::{LOAD_PATH, LoadTarget, LoadTargetError, json_response, load_head};
pub use ndt7::{
    AppInfo, ConnectionInfo, Measurement, NDT7_MESSAGE_BYTES, NDT7_MESSAGE_BYTES_MAX,
    next_message_bytes,
};
pub use throughput1::{
    ByteCounters, ConnectionFacts, LayerCounters, THROUGHPUT1_MESSAGE_BYTES, THROUGHPUT1_PROTOCOL,
    Throughput1, WireMeasurement,
};
pub use visitor::{
    NDT7_PROTOCOL, VISITOR_BYTES_MAX, VISITOR_PATHS, Visitor, VisitorAnswer, VisitorRequest,
    VisitorTarget, VisitorTargetError,
};
pub use websocket::{FRAME_HEAD_BYTES_MAX, FrameError, FrameHead, Opcode, message_head, switching};
