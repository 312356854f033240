//! The filter of system calls: no sockets but those of an allowed network, no namespaces, no memory and no keys that are
//! shared with processes outside, and no leaving of the process group.

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

/// What makes a namespace. In a user namespace of its own a command would be root, and reach parts of the kernel that are
/// closed to it otherwise.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME, which libc does not name everywhere
];

/// Shared memory, semaphores and queues that every process of the user reaches by a number, whatever files it may open; and
/// the keys that the kernel keeps for the user.
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

/// Ties this thread, and what it becomes, to its process group.
///
/// INVARIANT: whatever a command starts stays in its group, so that killing the group leaves nothing behind. The calls
/// answer success and do nothing: programs go on as if they had left.
pub fn tie() -> Result<(), ConfineError> {
    apply([(libc::SYS_setsid, Vec::new()), (libc::SYS_setpgid, Vec::new())], 0)
}

/// Closes namespaces and what is shared by number.
pub fn separate() -> Result<(), ConfineError> {
    let confine_error = |error: BackendError| ConfineError::Filter(error.to_string());
    let making = NAMESPACES.map(|flag| with_flag(flag).map_err(confine_error));
    let making = making.into_iter().collect::<Result<Vec<_>, _>>()?;
    let entering = [(libc::SYS_unshare, Vec::new()), (libc::SYS_setns, Vec::new()), (libc::SYS_clone, making)];
    apply(entering, libc::EPERM)?;
    // Its flags lie in memory, where a filter cannot look. The libraries then use the older call.
    apply([(libc::SYS_clone3, Vec::new())], libc::ENOSYS)?;
    apply(SHARED.map(|call| (call, Vec::new())), libc::ENOSYS)
}

/// Closes sockets.
///
/// A local socket is refused also where the network is allowed: by one, a command could have a service outside the
/// sandbox do what the command may not. `socketpair`, which stays among processes of the command, is not touched.
pub fn close_sockets(network: bool) -> Result<(), ConfineError> {
    let confine_error = |error: BackendError| ConfineError::Filter(error.to_string());
    let socket_rules = if network { vec![outside_the_network().map_err(confine_error)?] } else { Vec::new() };
    apply([(libc::SYS_socket, socket_rules)], libc::EACCES)?;
    // A ring makes sockets too, without the call that is filtered.
    apply([(libc::SYS_io_uring_setup, Vec::new())], libc::ENOSYS)
}

fn apply(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>, number: i32) -> Result<(), ConfineError> {
    let program = filter(calls, number).map_err(|error| ConfineError::Filter(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| ConfineError::Filter(error.to_string()))
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

/// Matches a call whose first argument has this flag.
fn with_flag(flag: i32) -> Result<SeccompRule, BackendError> {
    let flag = u64::from(flag.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?])
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
