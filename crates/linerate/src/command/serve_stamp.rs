//! `linerate serve`: whom the reflector of STAMP answers, and on which port.

use std::path::PathBuf;

use linerate_core::record::{Failure, STAMP_PORT};
use linerate_proto::stamp::ReflectorOptions;
use linerate_server::listen::MeasurementServer;

use super::stamp_key;
use crate::output;

/// Flags of the reflector.
#[derive(Debug, clap::Args)]
pub(crate) struct StampFlags {
    /// UDP port on which senders of STAMP (RFC 8762) are answered, or none [default: 862 where it
    /// may be opened]
    #[arg(long, value_name = "PORT|none", value_parser = parse_stamp_port)]
    stamp_port: Option<StampPort>,
    /// Answer only STAMP packets that are signed with the key in this file, hexadecimal digits of
    /// 16 bytes or more
    #[arg(long, value_name = "FILE")]
    stamp_key: Option<PathBuf>,
    /// Repeat the number of each STAMP packet instead of counting the answers of each session
    #[arg(long)]
    stamp_stateless: bool,
    /// Answer STAMP packets of 14 to 43 bytes with 44, as old senders of TWAMP may want (RFC 8762
    /// section 4.6): by a forged source more goes to another than came, up to 1000 a second
    #[arg(long)]
    stamp_short: bool,
    /// Answer STAMP packets from ports below 1024, too, where services listen that may answer in
    /// turn; never from port 862 or the reflector's own, where another reflector may be
    #[arg(long)]
    stamp_low_ports: bool,
}

/// UDP port on which STAMP is reflected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampPort {
    None,
    At(u16),
}

fn parse_stamp_port(text: &str) -> Result<StampPort, String> {
    match text {
        "none" => Ok(StampPort::None),
        port => port.parse().map(StampPort::At).map_err(|_| "a port is 0 to 65535".to_owned()),
    }
}

impl StampFlags {
    /// Options of the reflector by the flags.
    pub(crate) fn options(&self) -> Result<ReflectorOptions, Failure> {
        Ok(ReflectorOptions {
            key: self.stamp_key.as_deref().map(stamp_key::read).transpose()?,
            stateless: self.stamp_stateless,
            short: self.stamp_short,
            low_ports: self.stamp_low_ports,
        })
    }

    /// Opens the reflector of STAMP and prints a line. A port of the flags has to be free; the
    /// default one is left out where it cannot be opened.
    pub(crate) fn reflect(
        &self,
        server: &mut MeasurementServer,
        options: ReflectorOptions,
    ) -> Result<(), Failure> {
        let asked = self.stamp_port;
        let port = match asked {
            Some(StampPort::None) => return Ok(()),
            Some(StampPort::At(port)) => port,
            None => STAMP_PORT,
        };
        let signed = if options.key.is_some() { ", signed packets only" } else { "" };
        match server.reflect_stamp(port, options) {
            Ok(()) => {
                let port = server.stamp_port().unwrap_or(port);
                output::print_note(&format!("linerate: reflects STAMP on UDP port {port}{signed}"));
                Ok(())
            }
            Err(failure) if asked.is_some() => Err(failure),
            Err(failure) => {
                let Failure { reason, .. } = failure;
                output::print_note(&format!(
                    "linerate: no STAMP on UDP port {port} ({reason}); choose another with --stamp-port"
                ));
                Ok(())
            }
        }
    }
}
