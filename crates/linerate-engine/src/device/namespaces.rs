//! Where the tester's interfaces are: in this program's own network namespace, or on the hosts of
//! a laboratory.

use linerate_core::record::Failure;

use crate::lab::Lab;

/// Network namespaces by the name of a host.
pub trait Namespaces: Sync {
    /// Does `work` once on a thread inside the namespace of `host`; in this program's own without
    /// one.
    /// # Errors
    /// When there is no such host, or its namespace cannot be entered.
    fn run(&self, host: Option<&str>, work: &mut (dyn FnMut() + Send)) -> Result<(), Failure>;

    /// Called before trials whose numbers share the upper 16 bits of `trial`, while nothing is on
    /// its way: devices that are planted here start anew.
    fn trials_begin(&self, _trial: u32) {}
}

/// This program's own network namespace, whatever the host is called.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnNamespace;

impl Namespaces for OwnNamespace {
    fn run(&self, _host: Option<&str>, work: &mut (dyn FnMut() + Send)) -> Result<(), Failure> {
        work();
        Ok(())
    }
}

impl Namespaces for Lab {
    fn run(&self, host: Option<&str>, work: &mut (dyn FnMut() + Send)) -> Result<(), Failure> {
        match host {
            Some(host) => self.run_on(host, work),
            None => {
                work();
                Ok(())
            }
        }
    }

    fn trials_begin(&self, trial: u32) {
        self.begin_devices(trial);
    }
}

/// The value of `work`, done inside the namespace of `host`.
/// # Errors
/// As of [`Namespaces::run`].
pub(super) fn inside<T: Send>(
    namespaces: &dyn Namespaces,
    host: Option<&str>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let (mut work, mut value) = (Some(work), None);
    namespaces.run(host, &mut || value = work.take().map(|work| work()))?;
    Ok(value.expect("the work was done once"))
}
