//! Whether the texts of a chart lie within it and beside each other, by the widths of DejaVu Sans:
//! the widest of the faces that `system-ui, sans-serif` usually is.

/// Advances of the characters from space to tilde, thousandths of the size: `hmtx` of DejaVu Sans
/// 2.37 and of its bold face.
const PLAIN: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
const BOLD: [u16; 95] = [
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696,
    696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683,
    683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771,
    724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665,
    343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
];

/// Above and below the base line, shares of the size: what digits and capitals take.
const ASCENT: f64 = 0.74;
const DESCENT: f64 = 0.21;

/// The size that the head of every chart sets.
const SIZE: f64 = 13.0;

/// A text and the box that it takes.
struct Text {
    said: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// What is wrong with the texts of a chart: those that leave it, and pairs that cover each other.
pub fn faults(svg: &str) -> Vec<String> {
    let size = attribute(svg, "viewBox").expect("a view box");
    let size: Vec<f64> = size.split(' ').map(|it| it.parse().expect("a number")).collect();
    let texts: Vec<Text> = svg.lines().filter(|line| line.starts_with("<text")).map(text).collect();
    let mut faults = Vec::new();
    for (at, one) in texts.iter().enumerate() {
        let inside = one.left >= -0.5 && one.right <= size[2] + 0.5;
        if !inside || one.top < size[1] - 0.5 || one.bottom > size[1] + size[3] + 0.5 {
            faults.push(format!("'{}' leaves the chart", one.said));
        }
        for other in &texts[..at] {
            let width = one.right.min(other.right) - one.left.max(other.left);
            let height = one.bottom.min(other.bottom) - one.top.max(other.top);
            if width > 0.5 && height > 0.5 {
                faults.push(format!("'{}' covers '{}'", one.said, other.said));
            }
        }
    }
    faults
}

fn text(line: &str) -> Text {
    let number = |name| attribute(line, name).and_then(|text| text.parse::<f64>().ok());
    let (x, y) = (number("x").expect("x"), number("y").expect("y"));
    let size = number("font-size").unwrap_or(SIZE);
    let said = line.split('>').nth(1).and_then(|rest| rest.split('<').next()).expect("a text");
    let said = said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let face = if attribute(line, "font-weight").is_some() { BOLD } else { PLAIN };
    let advance = |c: char| {
        let at = (c as usize).checked_sub(0x20);
        at.and_then(|at| face.get(at)).map_or(0.64, |thousandths| f64::from(*thousandths) / 1e3)
    };
    let width = said.chars().map(advance).sum::<f64>() * size;
    let left = match attribute(line, "text-anchor") {
        Some("middle") => x - width / 2.0,
        Some("end") => x - width,
        _ => x,
    };
    // Digits stand on the line.
    let digits = said.chars().all(|c| c.is_ascii_digit());
    let bottom = if digits { y } else { y + DESCENT * size };
    Text { said, left, right: left + width, top: y - ASCENT * size, bottom }
}

fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(&format!(" {name}=\"")).nth(1)?.split('"').next()
}
