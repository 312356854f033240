//! What a command that runs as root keeps of being root: reading and writing files of other owners, which the mounted project
//! of a container needs. All else would lead past Landlock: owners and modes of files, other processes' memory, devices,
//! the kernel. Nobody else keeps anything, not even within a user namespace.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::ConfineError;

/// It is still bound to the places that Landlock allows. Owners and modes are not, so nothing that changes these is kept.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Gives up all other capabilities of this thread. INVARIANT: it can gain none back by what it becomes, as Landlock and
/// the filter were set up so that it gains no privileges.
pub fn restrict() -> Result<(), ConfineError> {
    let failed = |error: rustix::io::Errno| ConfineError::Capability(error.kind());
    let own = if rustix::process::getuid().is_root() { KEPT } else { CapabilitySet::empty() };
    let kept = capabilities(None).map_err(failed)?.permitted & own;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}
