//! The seccomp filter: denies sockets except those of an allowed network, namespaces, shared memory and keys that
//! processes outside the sandbox can reach, and leaving the process group.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::ConfineError;

/// On x86-64 every system call has a second number, that of the x32 ABI.
const X32: i64 = 0x4000_0000;

/// Socket families that network access needs; netlink lists the addresses of this machine.
const NETWORK: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Flags that create a namespace. In its own user namespace a command would be root and reach parts of the kernel that
/// it cannot reach otherwise.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME, which libc does not define on every platform
];

/// System V and POSIX IPC objects, which every process of the same user reaches by number whatever files it may open,
/// and the kernel keyrings of the user.
const SHARED: [i64; 16] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

/// Keeps this thread, and the program that it executes, in its process group.
///
/// INVARIANT: everything that a command starts stays in its group, so that killing the group leaves nothing behind. The
/// filtered calls return success and do nothing, so that programs continue as if they had left the group.
pub fn tie() -> Result<(), ConfineError> {
    apply([(libc::SYS_setsid, Vec::new()), (libc::SYS_setpgid, Vec::new())], 0)
}

/// Denies namespaces and IPC objects that are addressed by number.
pub fn separate() -> Result<(), ConfineError> {
    let confine_error = |error: BackendError| ConfineError::Filter(error.to_string());
    let making = NAMESPACES.map(|flag| with_flag(flag).map_err(confine_error));
    let making = making.into_iter().collect::<Result<Vec<_>, _>>()?;
    let entering = [(libc::SYS_unshare, Vec::new()), (libc::SYS_setns, Vec::new()), (libc::SYS_clone, making)];
    apply(entering, libc::EPERM)?;
    // The flags of `clone3` are in memory that a filter cannot read. With ENOSYS the C libraries fall back to `clone`.
    apply([(libc::SYS_clone3, Vec::new())], libc::ENOSYS)?;
    apply(SHARED.map(|call| (call, Vec::new())), libc::ENOSYS)
}

/// Denies sockets.
///
/// Local sockets are denied even if the network is allowed: through one, a command could have a service outside the
/// sandbox do what the command may not. `socketpair`, which only connects processes of the command, is allowed.
pub fn close_sockets(network: bool) -> Result<(), ConfineError> {
    let confine_error = |error: BackendError| ConfineError::Filter(error.to_string());
    let socket_rules = if network { vec![outside_the_network().map_err(confine_error)?] } else { Vec::new() };
    apply([(libc::SYS_socket, socket_rules)], libc::EACCES)?;
    // io_uring creates sockets without the filtered call.
    apply([(libc::SYS_io_uring_setup, Vec::new())], libc::ENOSYS)
}

fn apply(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>, number: i32) -> Result<(), ConfineError> {
    let program = filter(calls, number).map_err(|error| ConfineError::Filter(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| ConfineError::Filter(error.to_string()))
}

/// Makes the calls fail with this error number. A call without rules always fails.
fn filter(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>, number: i32) -> Result<BpfProgram, BackendError> {
    let mut rules = BTreeMap::new();
    for (call, conditions) in calls {
        if cfg!(target_arch = "x86_64") {
            rules.insert(call | X32, conditions.clone());
        }
        rules.insert(call, conditions);
    }
    let denial = SeccompAction::Errno(number.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, denial, architecture)?.try_into()
}

/// Matches a call whose first argument contains this flag.
fn with_flag(flag: i32) -> Result<SeccompRule, BackendError> {
    let flag = u64::from(flag.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?])
}

/// Matches a socket family that is not in [`NETWORK`].
fn outside_the_network() -> Result<SeccompRule, BackendError> {
    let mut conditions = Vec::new();
    for family in NETWORK {
        let family = u64::from(family.unsigned_abs());
        conditions.push(SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?);
    }
    SeccompRule::new(conditions)
}
