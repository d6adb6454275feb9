//! HTTP/1.1 (RFC 9112) as far as tests over it need: heads of requests in, heads of answers out.
//!
//! What a browser is told and sends otherwise is the server's. Left out: chunked bodies, whose
//! framing would be counted, and everything above HTTP/1.1, where several streams are one
//! connection. `spec/http.md` has the paths and their answers.

mod code;
mod head;
mod load;
mod ndt7;
mod throughput1;
mod visitor;
mod websocket;

pub use code::three_digits;
pub use head::{HEAD_BYTES_MAX, Head, HeadError, Start, start_of};
pub use load::{LOAD_PATH, LoadTarget, NotALoad, answer, load_head};
pub use ndt7::{
    AppInfo, ConnectionInfo, Measurement, NDT7_MESSAGE_BYTES, NDT7_MESSAGE_BYTES_MAX,
    next_message_bytes,
};
pub use throughput1::{
    ByteCounters, THROUGHPUT1_MESSAGE_BYTES, THROUGHPUT1_PROTOCOL, Throughput1, WhoMeasures,
    WireMeasurement,
};
pub use visitor::{
    NDT7_PROTOCOL, NotAVisitor, VISITOR_BYTES_MAX, VISITOR_PATHS, Visitor, VisitorAnswer,
    VisitorTarget, Wish,
};
pub use websocket::{FRAME_HEAD_BYTES_MAX, FrameError, FrameHead, Opcode, message_head, switching};
