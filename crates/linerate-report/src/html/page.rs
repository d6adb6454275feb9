//! The frame of a page: head, style, and the small pieces that pages share.

use linerate_core::record::{METRICS, MetricId};

use crate::escape::xml;
use crate::{number, svg, words};

/// Style of every page; colours are variables, so that dark and print swap them in one place.
const STYLE: &str = "
:root{color-scheme:light dark;--ground:#ffffff;--ink:#1a1a1a;--soft:#595959;--rule:#d8d8d8;
--box:#f2f6fa;--past:#f6f6f6;--accent:#0072b2}
@media (prefers-color-scheme:dark){:root{--ground:#16181c;--ink:#f0f0f0;--soft:#b8b8b8;
--rule:#3a3a3a;--box:#1e2732;--past:#202328;--accent:#4fb0f0}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem 1.25rem 3rem;max-width:76rem;background:var(--ground);
color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 .25rem}
h2{font-size:1.2rem;margin:2.2rem 0 .5rem}
h3{font-size:1rem;margin:1.4rem 0 .4rem}
p{margin:.4rem 0}
.lead{color:var(--soft);margin:.1rem 0}
.box{background:var(--box);border-left:4px solid var(--accent);border-radius:4px;
padding:1rem 1.2rem;margin:1rem 0}
.tiles{display:flex;flex-wrap:wrap;gap:1rem 2rem}
.tile{flex:1 1 12rem}
.figure{font-size:1.75rem;font-weight:650;line-height:1.15;white-space:nowrap}
.past{color:var(--soft)}
.sentence{margin-top:.9rem;font-size:1.05rem}
.panels{display:flex;flex-wrap:wrap;gap:1rem}
.panels>svg{flex:1 1 22rem;min-width:0;max-width:36rem;width:100%;height:auto}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,32rem),1fr));gap:0 2rem}
.plots>section{min-width:0}.plots>.wide{grid-column:1/-1}
figure{margin:0}figcaption{color:var(--soft);max-width:60rem}
.scroll{overflow-x:auto;margin:.4rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--rule);text-align:right;
white-space:nowrap}
thead th{vertical-align:bottom;white-space:normal;min-width:3.5rem}
th:first-child{text-align:left;position:sticky;left:0;background:var(--ground)}
tbody th{font-weight:400}
tbody .published th:first-child,.published td{color:var(--soft);background:var(--past)}
.compare td:nth-child(odd){color:var(--soft);background:var(--past)}
.compare thead th:nth-child(odd):not(:first-child){color:var(--soft)}
.columns{display:flex;flex-wrap:wrap;gap:0 2.5rem}.columns>*{flex:0 1 auto;min-width:0}
ul{padding-left:1.2rem}
details{margin:1rem 0}summary{cursor:pointer;font-weight:600}
pre{overflow-x:auto;background:var(--past);padding:.8rem;font-size:.85rem}
dt{font-weight:600;margin-top:.6rem}dd{margin:0 0 0 1rem}
.answers{max-width:60rem}.answers dd{margin-top:.1rem}
footer{margin-top:3rem;color:var(--soft);font-size:.9rem}
@media (max-width:40rem){body{padding:.6rem .8rem 2rem}.figure{font-size:1.45rem}
.tile{flex-basis:9rem}th,td{padding:.25rem .45rem}.box{padding:.8rem .9rem}}
@media print{:root{color-scheme:light;--ground:#fff;--ink:#000;--soft:#444;--rule:#bbb;
--box:#fff;--past:#fff}body{max-width:none;font-size:11px;padding:0}
figure,table,.box{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}
.panels>svg{flex-basis:45%}}
";

/// A whole page around a body.
pub(super) fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n<title>{}</title>\n<style>{STYLE}{}</style>\n</head>\n<body>\n\
         {body}</body>\n</html>\n",
        xml(title),
        // Print keeps the light colours of the charts.
        svg::style().replacen("@media (", "@media screen and (", 1),
    )
}

/// Text in which a number is not parted from its unit at the end of a line.
pub(super) fn unparted(text: &str) -> String {
    let units = ["%", "ms", "s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ') {
        let bare = word.trim_end_matches([',', ';', '.', ')', ':']);
        if !out.is_empty() {
            let after_number = out.ends_with(|c: char| c.is_ascii_digit());
            out.push(if after_number && units.contains(&bare) { '\u{a0}' } else { ' ' });
        }
        out.push_str(word);
    }
    xml(&out)
}

/// A list of remarks; nothing for an empty one.
pub(super) fn list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", unparted(item))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// The title of a page.
pub(super) fn title(text: &str) -> String {
    format!("<h1>{}</h1>\n", unparted(text))
}

/// The lines under a page's title.
pub(super) fn leads(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<p class=\"lead\">{}</p>\n", unparted(line))).collect()
}

/// Large figures with what they are and what they were, then a sentence.
pub(super) fn headline(tiles: &[[String; 3]], sentence: &str) -> String {
    let tiles: String = tiles
        .iter()
        .map(|[figure, label, past]| {
            format!(
                "<div class=\"tile\"><div class=\"figure\">{}</div><div>{}</div>\
                 <div class=\"past\">{}</div></div>\n",
                xml(figure),
                unparted(label),
                unparted(past)
            )
        })
        .collect();
    format!(
        "<div class=\"box\"><div class=\"tiles\">\n{tiles}</div>\n<p class=\"sentence\">{}</p>\n\
         </div>\n",
        unparted(sentence)
    )
}

/// What each metric counts, from the one table, folded away.
pub(super) fn methods(metrics: &[MetricId]) -> String {
    let mut out = String::from("<details><summary>How the figures are defined</summary>\n<dl>\n");
    for row in METRICS.iter().filter(|row| metrics.contains(&row.id)) {
        let layer = row.layer.map_or_else(String::new, |it| format!(", {}", words::layer(it)));
        out.push_str(&format!(
            "<dt>{} ({}{layer})</dt><dd>{} Source: {}.</dd>\n",
            xml(row.title),
            xml(if row.unit == "1" { "ratio" } else { row.unit }),
            xml(row.definition),
            xml(row.source)
        ));
    }
    out.push_str("</dl>\n<p>1 Mbit/s is 1,000,000 bit/s. ");
    out.push_str(&format!("{} marks what was not measured.</p></details>\n", number::NONE));
    out
}

/// A plan as it was run, folded away.
pub(super) fn plan_echo(plan: &impl serde::Serialize) -> String {
    let json = serde_json::to_string_pretty(plan).unwrap_or_else(|error| error.to_string());
    format!(
        "<details><summary>The plan, every default filled in</summary>\n<pre>{}</pre></details>\n",
        xml(&json)
    )
}
