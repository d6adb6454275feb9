//! Where a server hands its figures on.

use linerate_server::listen::MeasurementServer;
use linerate_server::web::ExportReceiver;

use crate::output;

/// Flags of `linerate serve` for that.
#[derive(Debug, clap::Args)]
pub(super) struct ExportFlags {
    /// Hand the figures of /metrics on to this address by Prometheus' remote write:
    /// http://HOST:9090/api/v1/write; repeatable
    #[arg(long, value_name = "URL", conflicts_with = "no_web", value_parser = parse_export_url)]
    remote_write: Vec<String>,
    /// Hand the figures of /metrics on to this address by OTLP over HTTP (JSON):
    /// http://HOST:4318/v1/metrics; repeatable
    #[arg(long, value_name = "URL", conflicts_with = "no_web", value_parser = parse_export_url)]
    otlp: Vec<String>,
}

/// An address that figures can be sent to.
fn parse_export_url(text: &str) -> Result<String, String> {
    ExportReceiver::check_url(text).map(|()| text.to_owned())
}

/// Begins to export figures, and prints the place.
pub(super) fn hand_on(server: &MeasurementServer, flags: &ExportFlags) {
    let remote = flags.remote_write.iter().cloned().map(ExportReceiver::RemoteWrite);
    for receiver in remote.chain(flags.otlp.iter().cloned().map(ExportReceiver::Otlp)) {
        output::print_note(&format!("linerate: figures go to {receiver}, each 30 s"));
        server.export_figures(receiver);
    }
}
