//! The shipped tables, held to what the studies printed.

use super::*;

const fn about(id: &'static str) -> TableAbout {
    TableAbout { id, title: "", study: "", year: 0, source: "" }
}

fn table(id: &'static str) -> PublishedTable {
    let text = match id {
        "pren-2000-ping" => include_str!("../../../../../studies/data/pren-2000-ping.csv"),
        "pren-2000-ttcp" => include_str!("../../../../../studies/data/pren-2000-ttcp.csv"),
        "bradner-1990-routers" => {
            include_str!("../../../../../studies/data/bradner-1990-routers.csv")
        }
        "nap-1995" => include_str!("../../../../../studies/data/nap-1995.csv"),
        "oc12-1999" => include_str!("../../../../../studies/data/oc12-1999.csv"),
        "gigasunet-2004" => include_str!("../../../../../studies/data/gigasunet-2004.csv"),
        _ => include_str!("../../../../../studies/data/tcp-history.csv"),
    };
    PublishedTable::from_csv(about(id), text).expect("the shipped tables are sound")
}

fn figures() -> PublishedFigures {
    PublishedFigures::from_tables([table("pren-2000-ping"), table("pren-2000-ttcp")])
}

fn published_as(test: &str, mtu_bytes: Option<u32>) -> PublishedAs {
    PublishedAs { test: test.to_owned(), mtu_bytes }
}

#[test]
fn tcp_rows_are_those_of_the_printed_tables() {
    // PREN study 2000, TCP tables: test, MTU, window, best of several runs in Mbit/s.
    let printed: &[(&str, Option<u32>, u64, f64)] = &[
        ("c.1", Some(1500), 131_072, 480.0),
        ("c.1", Some(16_384), 16_384, 1302.0),
        ("c.2", None, 32_768, 422.0),
        ("c.3", None, 65_536, 415.0),
        ("i.1", None, 131_072, 258.0),
        ("e.2", None, 16_384, 93.0),
        ("e.2", None, 131_072, 122.0),
    ];
    for &(test, mtu_bytes, window, expected) in printed {
        let figures = figures();
        let row = figures.tcp_row(&published_as(test, mtu_bytes), window).expect("a printed row");
        assert_eq!(row.throughput_mbit_s, Some(expected), "{test} {window}");
    }
}

#[test]
fn ping_rows_are_those_of_the_printed_tables() {
    // PREN study 2000, ping tables: test, payload, mean in ms, pings per second.
    let printed: &[(&str, u32, f64, f64)] = &[
        ("c.1", 56, 0.011, 90_909.0),
        ("c.2", 1500, 0.157, 6369.0),
        ("c.3", 1024, 0.359, 2785.0),
        ("e.2", 56, 0.667, 1499.0),
        ("e.2", 1500, 1.590, 628.0),
    ];
    for &(test, payload, avg_ms, pings) in printed {
        let figures = figures();
        let row = figures.ping_row(&published_as(test, None), payload).expect("a printed row");
        assert_eq!((row.rtt_avg_ms, row.pings_per_s), (Some(avg_ms), Some(pings)), "{test}");
    }
}

#[test]
fn a_figure_that_was_not_printed_is_absent_and_not_zero() {
    let figures = figures();
    let row = figures.ping_row(&published_as("c.3", None), 1500).expect("the row has a place");
    assert_eq!((row.rtt_avg_ms, row.pings_per_s), (None, None));
    let row = figures.ping_row(&published_as("e.1", None), 56).expect("a printed row");
    assert_eq!((row.l2_hops, row.l3_hops), (None, None));
    assert_eq!(figures.ping_row(&published_as("c.2", None), 57), None);
    assert_eq!(figures.tcp_row(&published_as("c.2", Some(9000)), 32_768), None);
}

fn routers() -> Vec<PublishedRouter> {
    match table("bradner-1990-routers").rows {
        PublishedRows::Routers(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn items(id: &'static str) -> Vec<PublishedItem> {
    match table(id).rows {
        PublishedRows::Items(rows) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn router_rows_are_those_of_the_posting_of_1990() {
    let rows = routers();
    assert_eq!(rows.len(), 396);
    // Bradner 1990: device, protocol, cards, frame, offered, best without loss, flood.
    let first = &rows[0];
    assert_eq!((first.device.as_str(), first.protocol.as_str()), ("3com NETBuilder", "ip"));
    assert_eq!(
        (first.cards, first.streams, first.frame_bytes),
        (Cards::Within, Streams::Single, 64)
    );
    let rates = (first.offered_max_fps, first.max_rate_fps, first.flood_rate_fps);
    assert_eq!(rates, (Some(14_489), Some(6404), Some(6401)));
    // Two streams at once were flooded only.
    let dual = rows.iter().filter(|row| row.streams == Streams::Dual);
    assert!(dual.clone().count() > 0 && dual.clone().all(|row| row.max_rate_fps.is_none()));
}

#[test]
fn every_theoretical_rate_of_1990_is_what_the_formula_gives() {
    let table = table("bradner-1990-routers");
    let rows = routers();
    for (at, row) in rows.iter().enumerate() {
        let theory = table.theory(at).expect("theory has frame rates");
        let published = row.theoretical_fps.expect("every row has it") as f64;
        assert_eq!(theory.value, published, "row {at}: {row:?}");
        assert_eq!(table.compared(at), Some(TheoryComparison::Equal));
    }
}

#[test]
fn the_one_rate_of_1990_above_its_link_is_kept_and_told() {
    // Bradner 1990, Proteon rig, dual IP streams, 512 bytes: 4098 frames/s of at most 2349.
    let table = table("bradner-1990-routers");
    let odd: Vec<usize> = (0..table.cells.len())
        .filter(|at| table.theory(*at).is_some_and(|theory| theory.remark.is_some()))
        .collect();
    assert_eq!(odd.len(), 1);
    let row = &routers()[odd[0]];
    assert_eq!((row.device.as_str(), row.stream, row.frame_bytes), ("Proteon rig", 2, 512));
    assert_eq!((row.theoretical_fps, row.flood_rate_fps), (Some(2349), Some(4098)));
    let above = |rate: Option<u64>, row: &PublishedRouter| rate > row.theoretical_fps;
    let count = routers().iter().filter(|row| above(row.flood_rate_fps, row)).count();
    assert_eq!(count, 1);
    assert!(routers().iter().all(|row| !above(row.max_rate_fps, row)));
}

#[test]
fn ranges_and_bounds_of_the_texts_keep_their_ends() {
    let ends = |id, item: &str| {
        let rows = items(id);
        let row = rows.iter().find(|row| row.item == item).expect(item);
        let value = row.value.as_ref().expect(item);
        (value.lower_end(), value.upper_end())
    };
    assert_eq!(ends("nap-1995", "background_utilisation"), (Some(70.0), Some(80.0)));
    assert_eq!(ends("nap-1995", "window_too_large"), (Some(3.0), Some(5.0)));
    assert_eq!(ends("nap-1995", "goodput_1_to_8_flows"), (Some(40.0), Some(41.0)));
    assert_eq!(ends("oc12-1999", "packet_loss"), (None, Some(0.01)));
    assert_eq!(ends("oc12-1999", "line_rate"), (Some(622.08), Some(622.08)));
    assert_eq!(ends("gigasunet-2004", "throughput"), (Some(966.5), Some(966.5)));
}

#[test]
fn no_measured_figure_but_the_explained_one_is_above_its_ceiling() {
    let mut count = 0;
    for id in ["pren-2000-ttcp", "gigasunet-2004", "oc12-1999", "nap-1995"] {
        let table = table(id);
        for at in 0..table.cells.len() {
            let (Some(theory), Some(compared)) = (table.theory(at), table.compared(at)) else {
                continue;
            };
            count += 1;
            match compared {
                TheoryComparison::Equal => {}
                TheoryComparison::Share(share) if share <= 1.0 => {}
                odd => assert!(theory.remark.is_some(), "{id} row {at}: {odd:?} of {theory:?}"),
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn the_oc12_study_comes_out_within_its_printed_rounding_or_the_reason_is_there() {
    let table = table("oc12-1999");
    let rows = items("oc12-1999");
    let stands = |item: &str| {
        let at = rows.iter().position(|row| row.item == item).expect(item);
        let theory = table.theory(at).expect(item);
        (table.compared(at).expect(item), theory.value, theory.remark.is_some())
    };
    // 622.08 x 26/27; 12 x 45 ms; the table of transfers at 451.9 Mbit/s.
    for item in
        ["after_sonet", "slow_start_waste", "transfer_10GB", "transfer_1GB", "transfer_100MB"]
    {
        let (compared, _, remark) = stands(item);
        assert!(compared == TheoryComparison::Equal && !remark, "{item}: {compared:?}");
    }
    // 599.04 x 48/53; 599.04 x 9180/10176; 572 x 9180/10176.
    let differ =
        [("after_atm", 542.527_4), ("after_aal5_snap", 540.407_5), ("ip_available", 516.014_2)];
    for (item, expected) in differ {
        let (compared, value, remark) = stands(item);
        assert!((value - expected).abs() < 1e-3, "{item}: {value}");
        assert!(matches!(compared, TheoryComparison::Differs(_)) && remark, "{item}: {compared:?}");
    }
    // 513 of 599.04 x 9140/10176.
    let (compared, value, _) = stands("tcp_local_through_router_max");
    assert!((value - 538.052_8).abs() < 1e-3, "{value}");
    assert!(matches!(compared, TheoryComparison::Share(share) if (share - 0.953_44).abs() < 1e-4));
}

#[test]
fn gigasunets_throughput_is_above_what_1500_bytes_carry() {
    let table = table("gigasunet-2004");
    let theory = table.theory(2).expect("a ceiling");
    // 1460 of 1538 bytes at 1 Gbit/s: 949.285 Mbit/s.
    assert!((theory.value - 949.284_8).abs() < 1e-3, "{theory:?}");
    assert!(theory.remark.is_some());
    // (M - 40) / (M + 38) = 0.9665 at M = (40 + 0.9665 x 38) / 0.0335 = 2290.4.
    let share = |mtu: f64| (mtu - 40.0) / (mtu + 38.0);
    assert!(share(2290.0) < 0.9665 && share(2291.0) > 0.9665);
}

#[test]
fn the_history_has_what_the_texts_give_and_no_more() {
    let table = table("tcp-history");
    let rows = table.milestones();
    let paper: Vec<&str> = rows
        .iter()
        .filter(|row| row.set == MilestoneSet::Paper)
        .map(|row| row.rate_mbit_s.source_text())
        .collect();
    // OC-12 study, section 6 and table 1.
    assert_eq!(paper, ["780", "30-40", "130", "200", "300-400", "400-513", "940", "952", "990"]);
    let years: Vec<f64> = rows.iter().filter_map(|row| row.year.lower_end()).collect();
    assert_eq!(years.len(), rows.len());
    assert!(years.is_sorted(), "{years:?}");
    let known = rows.iter().filter(|row| row.packets().is_some()).count();
    assert!(known > 5 && known < rows.len(), "{known}");
}
