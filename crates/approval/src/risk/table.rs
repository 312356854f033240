//! Known risks of commands and tools. Lists are separated by blanks. To extend them, add a word or a line; the tests
//! cover every line.

use super::Kind;

/// Commands with the same risk.
pub(super) struct Rule {
    /// The program, and words that must all be among its arguments.
    pub(super) command: &'static str,
    /// Arguments of which one must be present, unless this is empty; `prefix*` matches all that begin so.
    pub(super) any: &'static str,
    pub(super) kind: Kind,
}

const fn rule(command: &'static str, any: &'static str, kind: Kind) -> Rule {
    Rule { command, any, kind }
}

/// Programs with a risk whatever their arguments; `prefix*` as above.
pub(super) const PROGRAMS: &[(&str, Kind)] = &[
    (
        "rm rmdir unlink shred srm wipe truncate dd mkfs* wipefs fdisk sfdisk parted del erase rd dropdb dropuser",
        Kind::Deletes,
    ),
    (
        "curl wget ssh scp sftp rsync rclone nc ncat netcat socat telnet ftp lftp tftp mosh ping dig nslookup host whois \
        http https xh aria2c nmap",
        Kind::Network,
    ),
    ("sudo doas su pkexec runas gosu setcap setuidgid nsenter chroot", Kind::Privilege),
    ("eval", Kind::Hidden),
    ("printenv", Kind::Secrets),
    ("shutdown reboot halt poweroff", Kind::Final),
];

/// Programs with a risk for some arguments.
pub(super) const RULES: &[Rule] = &[
    rule("git push", "-f --force* -d --delete --mirror --prune +*", Kind::Deletes),
    rule("git reset", "--hard", Kind::Deletes),
    rule("git clean", "", Kind::Deletes),
    rule("git rm", "", Kind::Deletes),
    rule("git branch", "-d -D --delete", Kind::Deletes),
    rule("git tag", "-d --delete", Kind::Deletes),
    rule("git stash", "drop clear", Kind::Deletes),
    rule("git worktree", "remove", Kind::Deletes),
    rule("git checkout", "-- -f --force .", Kind::Deletes),
    rule("git restore", "", Kind::Deletes),
    rule("git update-ref", "-d", Kind::Deletes),
    rule("git filter-branch", "", Kind::Deletes),
    rule("find", "-delete", Kind::Deletes),
    rule("rsync", "--delete* --remove-source-files", Kind::Deletes),
    rule("docker", "rm rmi prune kill", Kind::Deletes),
    rule("podman", "rm rmi prune kill", Kind::Deletes),
    rule("kubectl", "delete drain", Kind::Deletes),
    rule("helm", "uninstall delete", Kind::Deletes),
    rule("terraform", "destroy", Kind::Deletes),
    rule("aws", "rm rb delete-* terminate-*", Kind::Deletes),
    rule("gcloud", "delete", Kind::Deletes),
    rule("az", "delete", Kind::Deletes),
    rule("gh", "delete", Kind::Deletes),
    rule("redis-cli", "flushall flushdb FLUSHALL FLUSHDB", Kind::Deletes),
    rule("curl", "DELETE delete -XDELETE --request=DELETE", Kind::Deletes),
    rule("npm unpublish", "", Kind::Deletes),
    rule("git", "push fetch pull clone ls-remote", Kind::Network),
    rule("npm", "add ci i install update", Kind::Network),
    rule("pnpm", "add i install update", Kind::Network),
    rule("yarn", "add install upgrade", Kind::Network),
    rule("pip", "install download", Kind::Network),
    rule("pip3", "install download", Kind::Network),
    rule("cargo", "add fetch install update", Kind::Network),
    rule("docker", "pull push login run", Kind::Network),
    rule("go", "get install", Kind::Network),
    rule("docker", "--privileged", Kind::Privilege),
    rule("podman", "--privileged", Kind::Privilege),
    rule("chown", "root root:* 0 0:*", Kind::Privilege),
    rule("base64", "-d -D --decode", Kind::Hidden),
    rule("xxd", "-r", Kind::Hidden),
    rule("gpg", "--export-secret-keys --export-secret-subkeys", Kind::Secrets),
    rule("security", "dump-keychain find-generic-password find-internet-password", Kind::Secrets),
    rule("gh auth token", "", Kind::Secrets),
    rule("npm publish", "", Kind::Final),
    rule("pnpm publish", "", Kind::Final),
    rule("yarn publish", "", Kind::Final),
    rule("cargo publish", "", Kind::Final),
    rule("twine upload", "", Kind::Final),
    rule("gem push", "", Kind::Final),
    rule("docker push", "", Kind::Final),
    rule("terraform apply", "", Kind::Final),
];

/// Shells, which execute their standard input.
pub(super) const SHELLS: &str = "ash bash csh dash fish ksh mksh powershell pwsh sh tcsh zsh";

/// Words in names of tools.
pub(super) const DELETING: &str = "delete deletes remove drop destroy purge erase wipe truncate terminate";
pub(super) const FINAL: &str =
    "buy charge order pay payment payments payout publish purchase refund transfer trade wire";

/// Statements that delete, in lower case with one blank between words.
pub(super) const STATEMENTS: &[&str] = &["drop table", "drop database", "drop schema", "truncate table", "delete from"];
