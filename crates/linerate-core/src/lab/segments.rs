//! Which links are one segment: what one frame can reach through switches and devices.

use super::LabPlan;
use super::problem::{Problem, Step};

/// Checks the segments: no loop of switches, one MTU, one link per node and segment.
pub(super) fn check_segments(plan: &LabPlan) -> Result<(), Problem> {
    let failed = |link, key, message| {
        let path = vec![Step::Key("link"), Step::Index(link), Step::Key(key)];
        Err(Problem { path, message })
    };
    if let Some(link) = switch_loop(plan) {
        let [left, right] = &plan.links[link].ends;
        let message = format!(
            "closes a loop of switches between `{left}` and `{right}`: frames would circle for ever"
        );
        return failed(link, "ends", message);
    }
    let segment = segments_of_links(plan);
    let mtu = |link: usize| plan.links[link].effective_mtu();
    for (link, later) in segment.iter().enumerate() {
        for earlier in (0..link).filter(|&earlier| segment[earlier] == *later) {
            if mtu(earlier) != mtu(link) {
                let message = format!(
                    "{} and {} bytes in one segment; a switch cannot cut packets, so all its \
                     links need one MTU",
                    mtu(earlier),
                    mtu(link)
                );
                return failed(link, "mtu_bytes", message);
            }
            let shared = plan.links[link].ends.iter().find(|end| {
                !joining(plan).contains(&end.as_str()) && plan.links[earlier].ends.contains(end)
            });
            if let Some(end) = shared {
                let message = format!("a second link from `{end}` into the same segment");
                return failed(link, "ends", message);
            }
        }
    }
    Ok(())
}

/// The first link that joins two switches or devices which are joined already.
fn switch_loop(plan: &LabPlan) -> Option<usize> {
    let nodes = joining(plan);
    let mut group: Vec<usize> = (0..nodes.len()).collect();
    let switch = |name: &str| nodes.iter().position(|node| *node == name);
    for (index, link) in plan.links.iter().enumerate() {
        let (Some(left), Some(right)) = (switch(&link.ends[0]), switch(&link.ends[1])) else {
            continue;
        };
        if !merge_groups(&mut group, left, right) {
            return Some(index);
        }
    }
    None
}

/// The segment of each link: links that meet in a switch or device share one.
pub(super) fn segments_of_links(plan: &LabPlan) -> Vec<usize> {
    let mut segment: Vec<usize> = (0..plan.links.len()).collect();
    for node in joining(plan) {
        let ports: Vec<usize> = (0..plan.links.len())
            .filter(|&link| plan.links[link].ends.iter().any(|end| end == node))
            .collect();
        for pair in ports.windows(2) {
            merge_groups(&mut segment, pair[0], pair[1]);
        }
    }
    numbered_in_order(&segment)
}

/// The nodes that join the links that they have.
fn joining(plan: &LabPlan) -> Vec<&str> {
    let switches = plan.switches.iter().map(|switch| switch.name.as_str());
    let devices = plan.devices.iter().map(|device| device.name.as_str());
    switches.chain(devices).collect()
}

/// Makes one group of the groups of two members; false when they were in one already.
fn merge_groups(group: &mut [usize], one: usize, other: usize) -> bool {
    let (kept, gone) = (group[one].min(group[other]), group[one].max(group[other]));
    group.iter_mut().filter(|of| **of == gone).for_each(|of| *of = kept);
    kept != gone
}

/// Gives the distinct values the numbers 0, 1, … in order of appearance.
fn numbered_in_order(values: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    let number_of = |value: &usize| {
        seen.iter().position(|known| known == value).unwrap_or_else(|| {
            seen.push(*value);
            seen.len() - 1
        })
    };
    values.iter().map(number_of).collect()
}
