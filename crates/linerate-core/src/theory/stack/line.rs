//! The rows from a link's rate down to the packets that its carrier carries.
//!
//! Left out: encapsulations and the flow's own headers, which are the parent's.

use super::StackError;
use crate::theory::access::{
    PTM_CODE_BYTES, PTM_DATA_BYTES, PTM_FRAME_BYTES, docsis_bytes, ptm_bytes, ptm_line_bytes,
};
use crate::theory::atm::{
    AAL5_PAYLOAD_MAX_BYTES, AAL5_TRAILER_BYTES, Aal5, CELL_PAYLOAD_BYTES, CellTrain, cell_train,
};
use crate::theory::carrier::Carrier;
use crate::theory::framing::{
    FCS_BYTES, GAP_BYTES, HEADER_BYTES, PREAMBLE_BYTES, frame_bytes, wire_bytes,
};
use crate::theory::link::LinkTechnology;
use crate::theory::ppp::Stuffing;
use crate::theory::sonet::{LineFraming, Pdh, Sonet};
use crate::theory::wifi;

/// A layer before its rate is known.
pub(super) struct LayerBytes {
    pub(super) name: String,
    /// Bytes of one full packet at this layer.
    pub(super) bytes: f64,
    pub(super) rule: String,
    pub(super) source: &'static str,
    pub(super) estimate: bool,
}

fn layer_with_bytes(name: &str, bytes: f64, rule: String, source: &'static str) -> LayerBytes {
    LayerBytes { name: name.to_owned(), bytes, rule, source, estimate: false }
}

/// Header and check sequence of an Ethernet frame.
const FRAME_TAKEN_BYTES: u32 = HEADER_BYTES + FCS_BYTES;

/// The rows of a link that carries `packet_bytes`, the line first, the packet last.
pub(super) fn carrier_rows(
    link: LinkTechnology,
    carrier: Carrier,
    packet_bytes: u32,
) -> Result<Vec<LayerBytes>, StackError> {
    Ok(match link {
        LinkTechnology::Ethernet(_) => {
            with_line(link, ethernet_rows(packet_bytes), "the rate counts preamble and gap")
        }
        LinkTechnology::WanPhy => wan_phy_rows(link, packet_bytes),
        LinkTechnology::Sonet(line) => {
            let rows = framed_rows(carrier, packet_bytes)?;
            sonet_rows(link, line, rows)
        }
        LinkTechnology::Pdh(line) => {
            let rows = framed_rows(carrier, packet_bytes)?;
            pdh_rows(link, line, carrier, rows)
        }
        LinkTechnology::Docsis(_) => docsis_rows(link, packet_bytes),
        LinkTechnology::Vdsl2(_) => vdsl2_rows(link, packet_bytes),
        LinkTechnology::Adsl(_) => {
            let rows = framed_rows(carrier, packet_bytes)?;
            with_line(link, rows, "the rate counts cells, headers included")
        }
        LinkTechnology::Shaped(_) => shaped_rows(link, packet_bytes),
        LinkTechnology::Wifi(_) => wifi_rows(link, packet_bytes)?,
        LinkTechnology::WifiLegacy(rate) => {
            let mbps = rate.bits_per_sec() / 1_000_000;
            wifi_legacy_rows(link, mbps, packet_bytes)?
        }
    })
}

/// Puts the line before rows that take all of it.
fn with_line(link: LinkTechnology, rows: Vec<LayerBytes>, rule: &str) -> Vec<LayerBytes> {
    let mut rows = rows;
    if let Some(first) = rows.first_mut() {
        first.name = link.display_title();
        rule.clone_into(&mut first.rule);
    }
    rows
}

/// Rows of an Ethernet frame; the first has its bytes on the line.
fn ethernet_rows(packet_bytes: u32) -> Vec<LayerBytes> {
    let frame = frame_bytes(packet_bytes, 0);
    let wire = wire_bytes(frame);
    let (preamble, gap) = (PREAMBLE_BYTES, GAP_BYTES);
    vec![
        layer_with_bytes("line", f64::from(wire), String::new(), "IEEE 802.3"),
        layer_with_bytes(
            "Ethernet frames",
            f64::from(frame),
            format!("{} of {wire} bytes: preamble {preamble}, gap {gap}", preamble + gap),
            "IEEE 802.3 §3.1.1 and §4.4.2",
        ),
        frame_payload_row(packet_bytes, frame),
    ]
}

/// Bytes of a frame without header, check sequence and padding.
fn frame_payload_row(packet_bytes: u32, frame: u32) -> LayerBytes {
    let padding = frame.saturating_sub(packet_bytes.saturating_add(FRAME_TAKEN_BYTES));
    let padded = match padding {
        0 => String::new(),
        _ => format!(", padding {padding}"),
    };
    let taken = FRAME_TAKEN_BYTES + padding;
    let rule = format!(
        "{taken} of {frame} bytes: header {HEADER_BYTES}, check sequence {FCS_BYTES}{padded}"
    );
    layer_with_bytes("Ethernet payload", f64::from(packet_bytes), rule, "IEEE 802.3 §3.1.1")
}

fn wan_phy_rows(link: LinkTechnology, packet_bytes: u32) -> Vec<LayerBytes> {
    let rows = ethernet_rows(packet_bytes);
    let mac_bytes = rows[0].bytes;
    let coded_bytes = mac_bytes * 66.0 / 64.0;
    let mut below = vec![
        layer_with_bytes("SONET payload", coded_bytes, String::new(), "IEEE 802.3 §50.1"),
        layer_with_bytes(
            "Ethernet with preamble and gap",
            mac_bytes,
            "2 of every 66 bits: 64B/66B code".to_owned(),
            "IEEE 802.3 §49.2.4",
        ),
    ];
    below.extend(rows.into_iter().skip(1));
    sonet_rows(link, Sonet::Oc192, below)
}

/// Puts a SONET line before rows whose first is its payload.
fn sonet_rows(link: LinkTechnology, line: Sonet, rows: Vec<LayerBytes>) -> Vec<LayerBytes> {
    let columns = line.columns();
    let (total, taken) = (columns.total, columns.total - columns.payload);
    let payload_bytes = rows.first().map_or(0.0, |row| row.bytes);
    let line_bytes = payload_bytes * f64::from(total) / f64::from(columns.payload);
    let source = "ITU-T G.707 §6.2 and §11.1; ANSI T1.105";
    let rule = format!(
        "{taken} of every {total} columns: section and line overhead {}, path overhead {}, fixed \
         stuff {}",
        columns.transport, columns.path, columns.stuff
    );
    let frame = format!("{total} columns of 9 bytes, 8000 times a second");
    let mut all = vec![
        layer_with_bytes(&link.display_title(), line_bytes, frame, source),
        layer_with_bytes("SONET payload", payload_bytes, rule, source),
    ];
    all.extend(rows.into_iter().skip(1));
    all
}

/// Puts a plesiochronous line before rows whose first is its payload.
fn pdh_rows(
    link: LinkTechnology,
    line: Pdh,
    carrier: Carrier,
    rows: Vec<LayerBytes>,
) -> Vec<LayerBytes> {
    let framing = match carrier {
        Carrier::Aal5(_) => line.cell_framing(),
        _ => line.packet_framing(),
    };
    let LineFraming { payload, total, taker, source } = framing;
    let payload_bytes = rows.first().map_or(0.0, |row| row.bytes);
    let line_bytes = payload_bytes * f64::from(total) / f64::from(payload);
    let rule = format!("{} of every {total} bits: {taker}", total - payload);
    let mut all = vec![
        layer_with_bytes(&link.display_title(), line_bytes, "the line's bits".to_owned(), source),
        layer_with_bytes("line payload", payload_bytes, rule, source),
    ];
    all.extend(rows.into_iter().skip(1));
    all
}

/// Rows of PPP or of cells; the first has their bytes of the line's payload.
fn framed_rows(carrier: Carrier, packet_bytes: u32) -> Result<Vec<LayerBytes>, StackError> {
    match carrier {
        Carrier::Pos { stuffed } => Ok(ppp_rows(Stuffing::Octets, stuffed, packet_bytes)),
        Carrier::Hdlc { stuffed } => Ok(ppp_rows(Stuffing::Bits, stuffed, packet_bytes)),
        Carrier::Aal5(mapping) => {
            let train = cell_train(packet_bytes, mapping.header_bytes());
            let train = train.ok_or_else(|| StackError::TooLong {
                carrier,
                bytes: packet_bytes,
                max_bytes: AAL5_PAYLOAD_MAX_BYTES - mapping.header_bytes(),
            })?;
            Ok(cell_rows(mapping, train, packet_bytes))
        }
        Carrier::Ethernet | Carrier::Ptm { .. } => Ok(ethernet_rows(packet_bytes)),
    }
}

fn ppp_rows(stuffing: Stuffing, stuffed: bool, packet_bytes: u32) -> Vec<LayerBytes> {
    let frame = packet_bytes.saturating_add(stuffing.frame_bytes());
    let added = if stuffed { stuffing.expected_bytes(packet_bytes) } else { 0.0 };
    let mut rows =
        vec![layer_with_bytes("line", f64::from(frame) + added, String::new(), "RFC 1662")];
    if stuffed {
        let share = match stuffing {
            Stuffing::Octets => "2 of 256 random bytes are escaped",
            Stuffing::Bits => "a bit after every 62 random ones",
        };
        let rule = format!("{added:.2} bytes a packet on average: {share}");
        let source = "RFC 1662 §4.2 and §5.2";
        let estimate = LayerBytes {
            estimate: true,
            ..layer_with_bytes("PPP frames", f64::from(frame), rule, source)
        };
        rows.push(estimate);
    }
    let rule = format!(
        "{} of {frame} bytes: flag 1, address and control 2, protocol 2, check sequence {}",
        stuffing.frame_bytes(),
        stuffing.fcs_bytes()
    );
    rows.push(layer_with_bytes(
        "PPP payload",
        f64::from(packet_bytes),
        rule,
        "RFC 1662 §3.1; RFC 2615",
    ));
    rows
}

fn cell_rows(mapping: Aal5, train: CellTrain, packet_bytes: u32) -> Vec<LayerBytes> {
    let CellTrain { cells, padding_bytes, wire_bytes } = train;
    let filled = cells * CELL_PAYLOAD_BYTES;
    let framed = packet_bytes + mapping.header_bytes();
    let trailer = AAL5_TRAILER_BYTES;
    let mut rows = vec![
        layer_with_bytes("cells", f64::from(wire_bytes), String::new(), "ITU-T I.361 §2.1"),
        layer_with_bytes(
            "cell payload",
            f64::from(filled),
            "5 of every 53 bytes: cell header".to_owned(),
            "ITU-T I.361 §2.1",
        ),
        layer_with_bytes(
            "AAL5 payload",
            f64::from(framed),
            format!(
                "{} of {filled} bytes: trailer {trailer}, padding {padding_bytes} to fill {cells} \
                 cells",
                trailer + padding_bytes
            ),
            "ITU-T I.363.5 §9.2.1",
        ),
    ];
    if mapping.header_bytes() > 0 {
        let rule =
            format!("{} of {framed} bytes: {}", mapping.header_bytes(), mapping.header_words());
        let name = if mapping.is_bridged() { "Ethernet payload" } else { "packets" };
        rows.push(layer_with_bytes(
            name,
            f64::from(packet_bytes),
            rule,
            "RFC 2684 §5 and §6; RFC 2364 §5",
        ));
    }
    rows
}

fn docsis_rows(link: LinkTechnology, packet_bytes: u32) -> Vec<LayerBytes> {
    let frame = docsis_bytes(packet_bytes);
    let rule = "the rate counts Ethernet frames with their check sequence".to_owned();
    vec![
        layer_with_bytes(
            &link.display_title(),
            f64::from(frame),
            rule,
            "CableLabs DOCSIS MULPI annex C",
        ),
        frame_payload_row(packet_bytes, frame),
    ]
}

fn vdsl2_rows(link: LinkTechnology, packet_bytes: u32) -> Vec<LayerBytes> {
    let (fragment, frame) = (ptm_bytes(packet_bytes), docsis_bytes(packet_bytes));
    let source = "IEEE 802.3 §61.3.3; ITU-T G.993.2 annex K";
    let code = PTM_CODE_BYTES - PTM_DATA_BYTES;
    vec![
        layer_with_bytes(
            &link.display_title(),
            ptm_line_bytes(packet_bytes),
            "the line's bytes".to_owned(),
            source,
        ),
        layer_with_bytes(
            "packet transfer mode",
            f64::from(fragment),
            format!("{code} of every {PTM_CODE_BYTES} bytes: 64/65 code"),
            source,
        ),
        layer_with_bytes(
            "Ethernet frames",
            f64::from(frame),
            format!("{PTM_FRAME_BYTES} of {fragment} bytes: start 1, end 1, check sequence 2"),
            source,
        ),
        frame_payload_row(packet_bytes, frame),
    ]
}

fn shaped_rows(link: LinkTechnology, packet_bytes: u32) -> Vec<LayerBytes> {
    let counted = packet_bytes.saturating_add(HEADER_BYTES);
    let source = "Linux net/sched/sch_tbf.c";
    vec![
        layer_with_bytes(
            &link.display_title(),
            f64::from(counted),
            "the rate counts the packet and its Ethernet header".to_owned(),
            source,
        ),
        layer_with_bytes(
            "Ethernet payload",
            f64::from(packet_bytes),
            format!("{HEADER_BYTES} of {counted} bytes: Ethernet header"),
            source,
        ),
    ]
}

/// Refuses packets that no 802.11 frame holds.
fn check_wifi_length(packet_bytes: u32) -> Result<(), StackError> {
    let max_bytes = wifi::MTU_MAX_BYTES;
    if packet_bytes > max_bytes {
        let carrier = Carrier::Ethernet;
        return Err(StackError::TooLong { carrier, bytes: packet_bytes, max_bytes });
    }
    Ok(())
}

fn wifi_rows(link: LinkTechnology, packet_bytes: u32) -> Result<Vec<LayerBytes>, StackError> {
    check_wifi_length(packet_bytes)?;
    let air = f64::from(packet_bytes) / wifi::AGGREGATED_SHARE;
    let rule = "three eighths, in truth 0.30 to 0.45 of it and more in company: contention, \
        preambles, headers and acknowledgements of aggregated frames";
    Ok(vec![
        layer_with_bytes(&link.display_title(), air, "the physical rate".to_owned(), "IEEE 802.11"),
        LayerBytes {
            estimate: true,
            ..layer_with_bytes("packets", f64::from(packet_bytes), rule.to_owned(), "rule of thumb")
        },
    ])
}

fn wifi_legacy_rows(
    link: LinkTechnology,
    mbps: u64,
    packet_bytes: u32,
) -> Result<Vec<LayerBytes>, StackError> {
    check_wifi_length(packet_bytes)?;
    let whole = link.bit_rate().bits_per_sec() == mbps.saturating_mul(1_000_000);
    let exchange = wifi::exchange(packet_bytes, mbps).filter(|_| whole);
    let exchange = exchange.ok_or(StackError::WifiRate { link })?;
    let air = mbps as f64 * exchange.cycle_us / 8.0;
    let frame = exchange.frame_bytes;
    let frame_us = f64::from(frame) * 8.0 / mbps as f64;
    let rule = format!(
        "{:.1} of {:.1} us: contention, preambles, filling of symbols and the acknowledgement; \
         those of TCP are not counted",
        exchange.cycle_us - frame_us,
        exchange.cycle_us
    );
    let headers = format!(
        "{} of {frame} bytes: MAC header {}, LLC/SNAP {}, check sequence {}",
        frame - packet_bytes,
        wifi::MAC_HEADER_BYTES,
        wifi::LLC_SNAP_BYTES,
        wifi::FCS_BYTES
    );
    Ok(vec![
        layer_with_bytes(
            &link.display_title(),
            air,
            "the physical rate".to_owned(),
            "IEEE 802.11 §17",
        ),
        LayerBytes {
            estimate: true,
            ..layer_with_bytes("802.11 frames", f64::from(frame), rule, "IEEE 802.11 §10.3 and §17")
        },
        layer_with_bytes(
            "packets",
            f64::from(packet_bytes),
            headers,
            "IEEE 802.11 §9.3.2; RFC 1042",
        ),
    ])
}
