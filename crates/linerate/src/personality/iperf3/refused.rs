//! Flags of iperf3 that are understood and not done, each with the reason.

/// What is refused in one line.
#[derive(Debug, clap::Args)]
pub(super) struct Refused {
    /// A file as payload
    #[arg(short = 'F', long, value_name = "FILE", hide = true)]
    file: Option<String>,
    /// IPv6 flow label
    #[arg(short = 'L', long, value_name = "N", hide = true)]
    flowlabel: Option<String>,
    /// Port of the client's streams
    #[arg(long, value_name = "PORT", hide = true)]
    cport: Option<String>,
    /// SCTP
    #[arg(long, hide = true)]
    sctp: bool,
    /// SCTP addresses
    #[arg(short = 'X', long, value_name = "ADDRESS", hide = true)]
    xbind: Option<String>,
    /// SCTP streams
    #[arg(long, value_name = "N", hide = true)]
    nstreams: Option<String>,
    /// Multipath TCP
    #[arg(short = 'm', long, hide = true)]
    mptcp: bool,
    /// Pace of the queueing discipline
    #[arg(long, value_name = "RATE", hide = true)]
    fq_rate: Option<String>,
    /// Step of iperf3's pacing
    #[arg(long, value_name = "TIME", hide = true)]
    pacing_timer: Option<String>,
    /// Interface to bind to
    #[arg(long, value_name = "DEVICE", hide = true)]
    bind_dev: Option<String>,
    /// No fragments
    #[arg(long, hide = true)]
    dont_fragment: bool,
    /// Time for unacknowledged data
    #[arg(long, value_name = "MS", hide = true)]
    snd_timeout: Option<String>,
    /// Rate above which a server gives up
    #[arg(long, value_name = "RATE", hide = true)]
    server_bitrate_limit: Option<String>,
    /// Receive without a copy
    #[arg(long, hide = true)]
    skip_rx_copy: bool,
    /// Joined datagrams
    #[arg(long, hide = true)]
    gsro: bool,
}

impl Refused {
    /// The first that was given, and why it is not done.
    pub(super) fn reason(&self) -> Option<String> {
        let none_of_its_own = "the kernel chooses the ports of a client; bind an address with -B";
        let not_spoken = "SCTP is not spoken; leave it out for TCP, or take -u";
        let all: [(&str, bool, &str); 15] = [
            ("--file", self.file.is_some(), "payload is made here; time cat FILE | nc for a disk"),
            ("--flowlabel", self.flowlabel.is_some(), "the kernel chooses flow labels"),
            ("--cport", self.cport.is_some(), none_of_its_own),
            ("--sctp", self.sctp, not_spoken),
            ("--xbind", self.xbind.is_some(), not_spoken),
            ("--nstreams", self.nstreams.is_some(), not_spoken),
            ("--mptcp", self.mptcp, "streams are plain TCP; compare with -P"),
            ("--fq-rate", self.fq_rate.is_some(), "give the pace by -b, which is even"),
            ("--pacing-timer", self.pacing_timer.is_some(), "the pace of -b needs no timer step"),
            ("--bind-dev", self.bind_dev.is_some(), "bind an address of that interface with -B"),
            ("--dont-fragment", self.dont_fragment, "take a size with -l that fits the route"),
            ("--snd-timeout", self.snd_timeout.is_some(), "a dead server is noticed by itself"),
            (
                "--server-bitrate-limit",
                self.server_bitrate_limit.is_some(),
                "rates are not policed; limit time with --server-max-duration",
            ),
            ("--skip-rx-copy", self.skip_rx_copy, "the fast receiver is linerate tcp's"),
            ("--gsro", self.gsro, "datagrams are joined where the kernel can, always"),
        ];
        let given = all.into_iter().find(|(_, given, _)| *given);
        given.map(|(flag, _, why)| format!("{flag} is not done: {why}"))
    }
}
