//! What a command that runs as root keeps of being root: working on files of other owners, which the mounted project of
//! a container needs. All else would lead past Landlock: other processes' memory, devices, the kernel.

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::ConfineError;

/// Each is still bound to the places that Landlock allows.
const KEPT: CapabilitySet =
    CapabilitySet::CHOWN.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::FOWNER).union(CapabilitySet::FSETID);

/// Gives up all other capabilities of this thread. INVARIANT: it can gain none back by what it becomes, as Landlock and
/// the filter were set up so that it gains no privileges.
pub fn restrict() -> Result<(), ConfineError> {
    let failed = |error: rustix::io::Errno| ConfineError::Capability(error.kind());
    let kept = capabilities(None).map_err(failed)?.permitted & KEPT;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}
