//! The filter of system calls: no sockets but those of an allowed network, and no leaving of the process group.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::ConfineError;

/// On x86-64 every call has a second number, of the x32 interface.
const X32: i64 = 0x4000_0000;

/// The families of sockets that a network needs; netlink tells which addresses this machine has.
const NETWORK: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Filters the calls of this thread, and of what it becomes.
///
/// A local socket is refused also where the network is allowed: by one, a command could have a service outside the
/// sandbox do what the command may not. `socketpair`, which stays among processes of the command, is not touched.
pub fn restrict(network: bool) -> Result<(), ConfineError> {
    let told = |error: BackendError| ConfineError::Filter(error.to_string());
    let socket_rules = if network { vec![outside_the_network().map_err(told)?] } else { Vec::new() };
    let sockets = [(libc::SYS_socket, socket_rules)];
    // A ring makes sockets too, without the call that is filtered.
    let rings = [(libc::SYS_io_uring_setup, Vec::new())];
    // INVARIANT: whatever a command starts stays in its group, so that killing the group leaves nothing behind. The
    // calls answer success and do nothing: programs go on as if they had left.
    let leaving = [(libc::SYS_setsid, Vec::new()), (libc::SYS_setpgid, Vec::new())];
    let filters = [
        filter(sockets, libc::EACCES).map_err(told)?,
        filter(rings, libc::ENOSYS).map_err(told)?,
        filter(leaving, 0).map_err(told)?,
    ];
    for program in filters {
        seccompiler::apply_filter(&program).map_err(|error| ConfineError::Filter(error.to_string()))?;
    }
    Ok(())
}

/// Answers the calls with the error number; no rules for a call means always.
fn filter(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>, number: i32) -> Result<BpfProgram, BackendError> {
    let mut rules = BTreeMap::new();
    for (call, conditions) in calls {
        if cfg!(target_arch = "x86_64") {
            rules.insert(call | X32, conditions.clone());
        }
        rules.insert(call, conditions);
    }
    let answer = SeccompAction::Errno(number.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?.try_into()
}

/// Matches a family that is none of the network's.
fn outside_the_network() -> Result<SeccompRule, BackendError> {
    let mut conditions = Vec::new();
    for family in NETWORK {
        let family = u64::from(family.unsigned_abs());
        conditions.push(SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?);
    }
    SeccompRule::new(conditions)
}
