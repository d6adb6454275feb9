//! Real-time priority for the prober, with a guard (sched(7)).

use linerate_core::record::{Failure, Fault};
use linerate_sys::{realtime, sched, sysctl};

use super::socket_wire::AnswerWaitMode;

/// Real-time priority, where nothing else is starved by it: the kernel takes 5 % of each second
/// from those that spin (sched_rt_runtime_us), unless it was told not to.
/// # Errors
/// Where it would starve others, or is not permitted.
pub(super) fn enter_real_time(waiting: AnswerWaitMode) -> Result<realtime::Turn, Failure> {
    let refuse = |fault, reason: String, advice: &str| {
        Failure::new(fault, "run with", "real-time priority", reason).advise(advice)
    };
    let spins = waiting != AnswerWaitMode::Sleep;
    if spins && sched::cpus_allowed() < 2 {
        let reason = "spinning would keep all else from the only CPU".to_owned();
        return Err(refuse(
            Fault::Usage,
            reason,
            "use --wait-mode block, or leave out --real-time",
        ));
    }
    let unlimited = sysctl::read("kernel/sched_rt_runtime_us").is_ok_and(|limit| limit == "-1");
    if spins && unlimited {
        let reason = "kernel.sched_rt_runtime_us is -1: nothing would end a thread that spins";
        let advice = "sysctl -w kernel.sched_rt_runtime_us=950000, or use --wait-mode block";
        return Err(refuse(Fault::Usage, reason.to_owned(), advice));
    }
    realtime::Turn::raise_priority().map_err(|error| {
        let advice = "needs CAP_SYS_NICE or a limit RLIMIT_RTPRIO (ulimit -r)";
        refuse(Fault::System, error.to_string(), advice)
    })
}
