//! Settings of TCP on one host of a laboratory, and the names that Linux gives them.
//!
//! Each network namespace has its own, so two hosts of one laboratory may differ. A setting that
//! is absent keeps the kernel's default, except `no_metrics_save`. Values and bounds follow the
//! kernel's Documentation/networking/ip-sysctl.rst; the initial window is an attribute of routes
//! (ip-route(8), `initcwnd` and `initrwnd`).

use serde::{Deserialize, Serialize};

use super::problem::{Problem, Step};

/// Largest initial window: 64 KiB of the smallest segments that Linux sends (48 bytes) and more
/// than any study used.
const INITIAL_WINDOW_MAX: u32 = 1024;
/// Least memory of a socket buffer: a page. Linux refuses less than one packet.
const BUFFER_BYTES_MIN: u64 = 4096;
/// Most memory of a socket buffer: the kernel keeps it in an int.
const BUFFER_BYTES_MAX: u64 = i32::MAX as u64;
/// Bytes of a name of a congestion control (TCP_CA_NAME_MAX is 16 with its end).
const NAME_BYTES_MAX: usize = 15;

/// Settings of TCP on a host; absent ones stay at the kernel's values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostTcp {
    /// Selective acknowledgements (tcp_sack).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Windows above 65,535 bytes (tcp_window_scaling).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Timestamps (tcp_timestamps).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Explicit congestion notification: asked for and accepted, or neither (tcp_ecn 1 and 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Congestion control of sockets that name none (tcp_congestion_control).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Segments that a new connection may send at once (initcwnd of the host's routes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Segments that a new connection offers to take at once (initrwnd of the host's routes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_receive_window: Option<u32>,
    /// Most memory that autotuning gives a receive buffer (third number of tcp_rmem). The window
    /// is what the kernel leaves of it beside its own bookkeeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmem_max_bytes: Option<u64>,
    /// Most memory that autotuning gives a send buffer (third number of tcp_wmem).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmem_max_bytes: Option<u64>,
    /// Fall back to the initial window after a pause (tcp_slow_start_after_idle).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start_after_idle: Option<bool>,
    /// Forget what a connection learnt of its peer when it ends (tcp_no_metrics_save); on when
    /// absent, so that a run inherits nothing from the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_metrics_save: Option<bool>,
    /// Tail loss probes (tcp_early_retrans, 0 to 4; 0 is off, the kernel's default is 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_retransmit: Option<u8>,
    /// Loss detection by time (tcp_recovery, a bit mask of 0 to 7; 0 is without RACK).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<u8>,
    /// Search for the path MTU: 0 never, 1 after a black hole was found, 2 always
    /// (tcp_mtu_probing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_probing: Option<u8>,
}

impl HostTcp {
    /// The settings under /proc/sys/net/ipv4 with their values, by the key of the plan. Leaves out
    /// those with no plain value there: buffers and the initial windows.
    pub fn sysctls(&self) -> Vec<(&'static str, &'static str, String)> {
        let flag = |value: Option<bool>| value.map(|on| u8::from(on).to_string());
        let number = |value: Option<u8>| value.map(|number| number.to_string());
        let all = [
            ("sack", "tcp_sack", flag(self.sack)),
            ("window_scaling", "tcp_window_scaling", flag(self.window_scaling)),
            ("timestamps", "tcp_timestamps", flag(self.timestamps)),
            ("ecn", "tcp_ecn", flag(self.ecn)),
            ("congestion_control", "tcp_congestion_control", self.congestion_control.clone()),
            (
                "slow_start_after_idle",
                "tcp_slow_start_after_idle",
                flag(self.slow_start_after_idle),
            ),
            ("no_metrics_save", "tcp_no_metrics_save", flag(self.no_metrics_save)),
            ("early_retransmit", "tcp_early_retrans", number(self.early_retransmit)),
            ("recovery", "tcp_recovery", number(self.recovery)),
            ("mtu_probing", "tcp_mtu_probing", number(self.mtu_probing)),
        ];
        all.into_iter().filter_map(|(key, name, value)| Some((key, name, value?))).collect()
    }

    /// The triples of buffers to set the last number of, by the key of the plan.
    pub fn buffers(&self) -> Vec<(&'static str, &'static str, u64)> {
        let all = [
            ("rmem_max_bytes", "tcp_rmem", self.rmem_max_bytes),
            ("wmem_max_bytes", "tcp_wmem", self.wmem_max_bytes),
        ];
        all.into_iter().filter_map(|(key, name, value)| Some((key, name, value?))).collect()
    }

    /// Checks that the kernel can take every value.
    pub(super) fn check_ranges(&self, path: &[Step]) -> Result<(), Problem> {
        let within = |key, value: Option<u64>, low: u64, high: u64| match value {
            Some(value) if !(low..=high).contains(&value) => {
                Err(problem(path, key, format!("{key} of {value}; {low} to {high} are allowed")))
            }
            _ => Ok(()),
        };
        let window = u64::from(INITIAL_WINDOW_MAX);
        within("initial_window", self.initial_window.map(u64::from), 1, window)?;
        within("initial_receive_window", self.initial_receive_window.map(u64::from), 1, window)?;
        within("rmem_max_bytes", self.rmem_max_bytes, BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)?;
        within("wmem_max_bytes", self.wmem_max_bytes, BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)?;
        within("early_retransmit", self.early_retransmit.map(u64::from), 0, 4)?;
        within("recovery", self.recovery.map(u64::from), 0, 7)?;
        within("mtu_probing", self.mtu_probing.map(u64::from), 0, 2)?;
        match self.congestion_control.as_deref() {
            Some(name) if !is_congestion_control(name) => {
                let message = format!("`{name}` is no name of a congestion control, as `cubic` is");
                Err(problem(path, "congestion_control", message))
            }
            _ => Ok(()),
        }
    }
}

/// True when the text can be the name of a congestion control; the kernel tells whether it has it.
pub(crate) fn is_congestion_control(name: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}

fn problem(path: &[Step], key: &'static str, message: String) -> Problem {
    Problem { path: [path, &[Step::Key(key)]].concat(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(tcp: &HostTcp, expected_key: &'static str) {
        let problem = tcp.check_ranges(&[]).expect_err("out of bounds");
        assert_eq!(problem.path, [Step::Key(expected_key)], "{problem}");
    }

    #[test]
    fn only_what_the_plan_names_is_set() {
        assert_eq!(HostTcp::default().sysctls(), []);
        let tcp = HostTcp {
            sack: Some(false),
            ecn: Some(true),
            recovery: Some(1),
            initial_window: Some(2),
            rmem_max_bytes: Some(2_097_152),
            ..HostTcp::default()
        };
        let expected = [
            ("sack", "tcp_sack", "0".to_owned()),
            ("ecn", "tcp_ecn", "1".to_owned()),
            ("recovery", "tcp_recovery", "1".to_owned()),
        ];
        assert_eq!(tcp.sysctls(), expected);
        assert_eq!(tcp.buffers(), [("rmem_max_bytes", "tcp_rmem", 2_097_152)]);
        assert_eq!(tcp.check_ranges(&[]), Ok(()));
    }

    #[test]
    fn a_value_that_the_kernel_cannot_take_is_refused_by_its_key() {
        let tcp = HostTcp::default();
        refused(&HostTcp { initial_window: Some(0), ..tcp.clone() }, "initial_window");
        refused(&HostTcp { rmem_max_bytes: Some(4095), ..tcp.clone() }, "rmem_max_bytes");
        refused(&HostTcp { wmem_max_bytes: Some(1 << 31), ..tcp.clone() }, "wmem_max_bytes");
        refused(&HostTcp { mtu_probing: Some(3), ..tcp.clone() }, "mtu_probing");
        refused(&HostTcp { recovery: Some(8), ..tcp.clone() }, "recovery");
        let named = |name: &str| HostTcp {
            congestion_control: Some(name.to_owned()),
            ..HostTcp::default()
        };
        refused(&named(""), "congestion_control");
        refused(&named("a b"), "congestion_control");
        refused(&named("sixteen_bytes_xx"), "congestion_control");
        assert_eq!(named("cubic").check_ranges(&[]), Ok(()));
    }
}
