//! From errors of the kernel to the one line that the user gets.

use linerate_core::record::{Failure, Fault};

/// This host could not do it.
pub fn system(error: &linerate_sys::Error) -> Failure {
    let failure = Failure::new(Fault::System, error.call, &error.object, &error.source);
    match error.source.kind() {
        std::io::ErrorKind::PermissionDenied => failure.advise("run it as root"),
        _ => failure,
    }
}
