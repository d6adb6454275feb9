//! How the ends of a TCP test move data: by which calls, on which processors, with which contents.
//!
//! What was asked is in the plan, what was used at each end in its [`super::FlowEnd`], and how it
//! was chosen, where trials chose it, in the record's trials. By default both ends copy every byte,
//! as applications do.

use serde::{Deserialize, Serialize};

use super::named::named;

/// Call with which a sender hands its bytes to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendWith {
    /// write(2): the kernel copies them.
    #[default]
    Write,
    /// sendfile(2) from a file in memory: the kernel refers to them.
    Sendfile,
    /// vmsplice(2) into a pipe and splice(2) into the socket: the kernel refers to them.
    Vmsplice,
    /// send(2) with MSG_ZEROCOPY: the kernel refers to them where it can, and reports afterwards.
    Zerocopy,
}

named!(SendWith {
    Write = "write",
    Sendfile = "sendfile",
    Vmsplice = "vmsplice",
    Zerocopy = "zerocopy",
});

/// Call with which a receiver takes bytes from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReceiveWith {
    /// recv(2): the kernel copies them to the program.
    #[default]
    Read,
    /// recv(2) with MSG_TRUNC: the kernel counts and drops them (tcp(7)).
    Trunc,
    /// splice(2) into a pipe and from there to /dev/null.
    Splice,
}

named!(ReceiveWith { Read = "read", Trunc = "trunc", Splice = "splice" });

/// Calls and cores with which data is to be moved; the default copies at both ends, pins no thread
/// and checks no contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Means {
    /// The sending end's call.
    pub send_with: SendWith,
    /// Bytes of one sending call; null is the plan's `buffer_bytes`.
    pub send_bytes: Option<u32>,
    /// The receiving end's call.
    pub receive_with: ReceiveWith,
    /// CPUs of the client's data threads, one after the other by stream number; with none the
    /// scheduler chooses.
    pub client_cpus: Vec<u32>,
    /// CPUs of the server's data threads, likewise.
    pub server_cpus: Vec<u32>,
    /// Send the pattern of this seed and hold every received byte against it.
    pub verify_seed: Option<u32>,
    /// Ask for Multipath TCP (RFC 8684).
    pub mptcp: bool,
}

impl Means {
    /// True when nothing beyond the default is asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// True when the calls or cores are not the default ones.
    pub fn moves_otherwise(&self) -> bool {
        let plain = Self { verify_seed: self.verify_seed, mptcp: self.mptcp, ..Self::default() };
        *self != plain
    }

    /// Cores of the data threads, in words: `one core`, `two cores`, `any core`.
    pub fn placement(&self) -> &'static str {
        match (self.client_cpus.as_slice(), self.server_cpus.as_slice()) {
            ([], []) => "any core",
            ([], _) | (_, []) => "one end pinned",
            (client, server) if client == server => match client.len() {
                1 => "one core",
                _ => "one core a pair",
            },
            ([_], [_]) => "two cores",
            _ => "cores of their own",
        }
    }
}

/// Treatment of the bytes at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Copied between the program and the kernel.
    Copied,
    /// Referred to, or counted and dropped: never copied by this end.
    Untouched,
    /// Written as a known pattern, or compared with it byte by byte.
    Checked,
}

/// Result of comparing the contents with the pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// Bytes that were compared with the pattern.
    pub bytes: u64,
    /// Bytes among them that differed.
    pub wrong_bytes: u64,
    /// Offset of the first wrong byte in the stream, from 0.
    pub first_wrong_offset: Option<u64>,
}

/// The kernel's reports of sends with MSG_ZEROCOPY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZeroCopySends {
    /// Calls that the kernel has reported the end of.
    pub completed: u64,
    /// Calls among them whose bytes it copied after all (SO_EE_CODE_ZEROCOPY_COPIED).
    pub copied: u64,
}

/// Use of Multipath TCP by a stream that asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MultipathTcp {
    /// True when both ends spoke it until the end.
    pub used: bool,
    /// Subflows beside the first one (mptcpi_subflows).
    pub subflows_more: Option<u32>,
    /// The reason why it was not used, where that is known.
    pub reason: Option<String>,
}

/// A short round that helped to choose how data is moved. It is in no other figure of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// The calls and cores of the trial.
    pub means: Means,
    /// Planned length of the trial.
    pub span_ns: u64,
    /// Payload that all streams of all directions received, over the span; null when it failed.
    pub goodput_bps: Option<f64>,
    /// CPU seconds of both ends' data threads per 10^9 bytes received.
    pub cpu_s_per_gb: Option<f64>,
    /// True when the test then used them.
    pub chosen: bool,
    /// The reason why the trial failed.
    pub failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused_with_the_choice() {
        for &with in SendWith::ALL {
            assert_eq!(with.name().parse(), Ok(with));
        }
        for &with in ReceiveWith::ALL {
            assert_eq!(with.name().parse(), Ok(with));
        }
        assert_eq!(
            "mmap".parse::<SendWith>(),
            Err("one of write, sendfile, vmsplice, zerocopy".to_owned())
        );
        assert_eq!("mmap".parse::<ReceiveWith>(), Err("one of read, trunc, splice".to_owned()));
    }

    #[test]
    fn a_placement_is_told_by_where_the_two_ends_are() {
        let of = |client: &[u32], server: &[u32]| {
            let (client_cpus, server_cpus) = (client.to_vec(), server.to_vec());
            Means { client_cpus, server_cpus, ..Means::default() }.placement()
        };
        assert_eq!(of(&[], &[]), "any core");
        assert_eq!(of(&[3], &[3]), "one core");
        assert_eq!(of(&[0, 1], &[0, 1]), "one core a pair");
        assert_eq!(of(&[0], &[1]), "two cores");
        assert_eq!(of(&[0], &[]), "one end pinned");
        assert_eq!(of(&[0, 2], &[1, 3]), "cores of their own");
    }

    #[test]
    fn checking_and_multipath_move_data_as_the_default_does() {
        let means = Means { verify_seed: Some(1), mptcp: true, ..Means::default() };
        assert!(!means.is_default() && !means.moves_otherwise());
        assert!(Means { receive_with: ReceiveWith::Trunc, ..means }.moves_otherwise());
    }
}
