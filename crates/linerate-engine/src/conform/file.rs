//! Packets of a capture file or of standard input, read in large pieces.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use linerate_core::conformance::{Conformance, Ended};
use linerate_core::record::{Failure, Fault};
use linerate_proto::capture::{Next, Stream};
use linerate_sys::poll;
use linerate_sys::stop::Stop;

use super::meter::Metering;
use crate::failure::words_of;

/// How long a silent pipe is waited for before the stop flag is looked at.
const PATIENCE: Duration = Duration::from_millis(200);

/// Meters the packets of a capture file.
pub(super) fn meter_file(
    metering: Metering,
    path: &Path,
    stop: &Stop,
) -> Result<Conformance, Failure> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &words_of(&error)))?;
    read(metering, &name, file, stop)
}

/// Meters the capture that comes on standard input.
pub(super) fn meter_stdin(metering: Metering, stop: &Stop) -> Result<Conformance, Failure> {
    let name = "standard input";
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let input = input.map_err(|error| unreadable(name, &words_of(&error)))?;
    read(metering, name, File::from(input), stop)
}

fn read(
    mut metering: Metering,
    name: &str,
    mut source: File,
    stop: &Stop,
) -> Result<Conformance, Failure> {
    let mut stream = Stream::new();
    loop {
        match stream.next_packet() {
            Ok(Next::Packet(packet)) => {
                if !metering.packet(&packet, 0) {
                    return Ok(metering.conformance_result(Ended::Limit, None));
                }
                continue;
            }
            Ok(Next::NeedsInput) => {}
            Err(error) => {
                return result_before_fault(&mut metering, &stream, unreadable(name, &error));
            }
        }
        if stop.is_requested() {
            return Ok(metering.conformance_result(Ended::Interrupted, None));
        }
        match read_available(&mut source, &mut stream) {
            Ok(true) => {}
            Ok(false) => {
                return match stream.check_end() {
                    Ok(()) => Ok(metering.conformance_result(Ended::Complete, None)),
                    Err(error) => {
                        result_before_fault(&mut metering, &stream, unreadable(name, &error))
                    }
                };
            }
            Err(error) => {
                return result_before_fault(
                    &mut metering,
                    &stream,
                    unreadable(name, &words_of(&error)),
                );
            }
        }
    }
}

/// Reads what there is; false at the end.
fn read_available(source: &mut File, stream: &mut Stream) -> std::io::Result<bool> {
    // A regular file is always readable.
    if !poll::readable(source, PATIENCE)? {
        return Ok(true);
    }
    match source.read(stream.free_space()) {
        Ok(0) => Ok(false),
        Ok(count) => {
            stream.filled(count);
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// The packets metered before a fault, as a result with that fault in it; the fault alone when
/// there were none.
fn result_before_fault(
    metering: &mut Metering,
    stream: &Stream,
    failure: Failure,
) -> Result<Conformance, Failure> {
    if stream.packets() == 0 {
        return Err(failure);
    }
    Ok(metering.conformance_result(Ended::Failed, Some(failure.to_string())))
}

fn unreadable(name: &str, reason: &dyn std::fmt::Display) -> Failure {
    Failure::new(Fault::System, "read capture", name, reason)
}
