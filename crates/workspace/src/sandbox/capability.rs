//! The capability that a command running as root keeps: reading and writing files of other owners, which a project
//! mounted into a container needs. All others would bypass Landlock: file owners and modes, memory of other processes,
//! devices, the kernel. Other users keep none, not even in a user namespace.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::ConfineError;

/// Landlock still restricts it to the allowed paths. It does not restrict changes of owners and modes, so no capability
/// for these is kept.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Drops all other capabilities of this thread. INVARIANT: executing a program does not restore any, because Landlock
/// and the seccomp filter are set up with `no_new_privs`.
pub fn restrict() -> Result<(), ConfineError> {
    let failed = |error: rustix::io::Errno| ConfineError::Capability(error.kind());
    let own = if rustix::process::getuid().is_root() { KEPT } else { CapabilitySet::empty() };
    let kept = capabilities(None).map_err(failed)?.permitted & own;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}
