//! The privilege to make network namespaces: that of root, or of a user namespace of one's own.

use linerate_core::record::{Failure, Fault};
use linerate_sys::{sysctl, userns};

/// The privilege that a laboratory is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The host's: the process came with CAP_SYS_ADMIN and CAP_NET_ADMIN.
    Host,
    /// The privilege of a user namespace that this process made.
    UserNamespace,
}

/// Gives this process the privilege that [`super::Lab::build_from_plan`] needs. Call it first
/// thing: a process with a second thread can no longer enter a user namespace.
/// # Errors
/// When the process has no privilege and the host lets users make no user namespaces.
pub fn enter_user_namespace_if_needed() -> Result<Privilege, Failure> {
    if userns::may_make_networks() {
        return Ok(Privilege::Host);
    }
    let failed = |reason: &dyn std::fmt::Display| {
        Failure::new(Fault::System, "get privilege for", "the laboratory", reason)
    };
    if userns::thread_count().is_ok_and(|threads| threads > 1) {
        return Err(failed(&"the process has several threads already")
            .advise("run as root, or enter it before threads are started"));
    }
    userns::enter_new().map_err(|error| failed(&error).advise(advice()))?;
    Ok(Privilege::UserNamespace)
}

/// The advice on what this host's settings say about user namespaces of plain users.
fn advice() -> String {
    let is = |name, value| sysctl::read(name).is_ok_and(|now| now == value);
    let line = if is("user/max_user_namespaces", "0") {
        "sysctl user.max_user_namespaces=1000"
    } else if is("kernel/unprivileged_userns_clone", "0") {
        "sysctl kernel.unprivileged_userns_clone=1"
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    } else {
        return "run as root; in a container, with --privileged".to_owned();
    };
    format!("run as root, or let users make them: {line}")
}
