//! The table of harmless arguments by program: options that neither write a file, nor run another program, nor load
//! settings, nor read outside the workspace, and the kind of operands. To extend it, add a word or a line. What is not
//! listed needs approval; a program that is not listed has no harmless options.

use super::operand::Kind::{self, Anything, Granted, Nothing, Paths, Revisions, Tests, Text, TextThenPaths, Verb};

mod builders;
mod simple;

pub(super) use self::simple::EVERYWHERE;

/// Words separated by blanks.
type List = &'static str;

#[derive(Debug)]
pub(super) struct Program {
    /// Names in lower case, without versions.
    pub(super) names: List,
    /// Options, in the notation of [`super::options`]; with subcommands, those before the subcommand.
    pub(super) options: List,
    /// Operands, if it has no subcommands.
    pub(super) operands: Kind,
    /// The harmless subcommands.
    pub(super) subcommands: &'static [Subcommand],
    /// How operands that are not listed are treated.
    pub(super) unlisted: Unlisted,
}

/// A subcommand, or several with the same options.
#[derive(Debug)]
pub(super) struct Subcommand {
    pub(super) names: List,
    pub(super) options: List,
    pub(super) operands: Kind,
}

/// How subcommands that are not listed are treated.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unlisted {
    /// They may be aliases, plugins or programs, or run what they are given: no prefix names one.
    Refused,
    /// A prefix may name one, except these, which run what they are given.
    Named { refused: List },
}

const NAMED: Unlisted = Unlisted::Named { refused: "" };

/// A program without subcommands.
const fn simple(names: List, options: List, operands: Kind) -> Program {
    Program { names, options, operands, subcommands: &[], unlisted: Unlisted::Refused }
}

const fn with(names: List, options: List, unlisted: Unlisted, subcommands: &'static [Subcommand]) -> Program {
    Program { names, options, operands: Nothing, subcommands, unlisted }
}

const fn sub(names: List, options: List, operands: Kind) -> Subcommand {
    Subcommand { names, options, operands }
}

/// All programs: version control and services from this file, the others by category.
pub(super) fn programs() -> impl Iterator<Item = &'static Program> {
    [OWN, simple::PROGRAMS, builders::PROGRAMS].into_iter().flatten()
}

const OWN: &[Program] = &[
    with(
        "git",
        "--no-pager -P --no-optional-locks --no-replace-objects --no-lazy-fetch --literal-pathspecs --no-advice",
        // Others are aliases, programs named `git-...`, or run commands: `config`, `bisect`, `difftool`.
        Unlisted::Refused,
        &[
            sub(
                "status",
                "-s -b -v -z --short --branch --verbose --porcelain[=] --long --ignored[=] --show-stash",
                Paths,
            ),
            sub(
                "log show whatchanged shortlog",
                "-p -u -s -q -n= -# -i -E -F -M -C -z -w -b --oneline --patch --no-patch --stat[=] --shortstat --numstat \
                --name-only --name-status --summary --graph --all --branches[=] --tags[=] --remotes[=] --decorate[=] \
                --no-decorate --since= --after= --until= --before= --author= --committer= --grep= --format= --pretty[=] \
                --abbrev[=] --abbrev-commit --no-abbrev-commit --merges --no-merges --first-parent --reverse --follow \
                --max-count= --skip= --date= --color[=] --no-color --cherry-pick --left-right --topo-order --date-order \
                --word-diff[=] --diff-filter= --no-renames --find-renames[=] --no-ext-diff --no-textconv --raw --merge-base \
                --summary --numbered --email",
                Revisions,
            ),
            sub(
                "diff diff-tree diff-index diff-files",
                "-p -u -s -w -b -z -M -C -R -r -U= --cached --staged --patch --no-patch --stat[=] --shortstat --numstat \
                --name-only --name-status --summary --color[=] --no-color --word-diff[=] --diff-filter= --no-renames \
                --find-renames[=] --ignore-all-space --ignore-space-change --ignore-blank-lines --unified= --exit-code \
                --quiet --check --raw --no-ext-diff --no-textconv --minimal --patience --histogram --merge-base",
                Revisions,
            ),
            sub("add", "-A -u -v -n -N --all --update --verbose --dry-run --intent-to-add", Paths),
            sub(
                "commit",
                "-a -m= -q -v -s --all --message= --quiet --verbose --signoff --amend --no-edit --allow-empty --dry-run \
                --short --porcelain",
                Paths,
            ),
            sub(
                "branch",
                "-a -r -v -q -l --all --remotes --verbose --list --show-current --merged --no-merged --sort= --format= \
                --contains= --no-color --color[=] --column[=]",
                Revisions,
            ),
            sub("tag", "-l -n -# --list --sort= --contains= --points-at= --merged --no-merged", Revisions),
            sub("checkout", "-b= -q --quiet --track", Revisions),
            sub("switch", "-c= -q --create= --quiet --detach -d", Revisions),
            sub("restore", "-S -W -q --staged --worktree --quiet", Paths),
            sub("mv", "-v -n -k --verbose --dry-run", Paths),
            sub("rm", "-r -n -q --cached --dry-run --quiet", Paths),
            sub("merge", "-q --no-edit --no-ff --ff --ff-only --squash --no-commit --abort --quiet", Revisions),
            sub("cherry-pick revert", "--no-edit --abort --quit --skip -x -n --no-commit", Revisions),
            sub("reset", "-q --soft --mixed --quiet", Revisions),
            sub("rebase", "-q --quiet --abort --quit --skip", Revisions),
            sub("clean", "-n -d -q --dry-run --quiet", Paths),
            sub("init", "-q --quiet", Nothing),
            // The prefix must name the repository.
            sub("clone ls-remote", "-q -v --quiet --verbose --depth= --single-branch", Nothing),
            sub("submodule", "--cached --recursive", Verb("status summary")),
            sub("fetch", "-p -q -v -t --all --prune --tags --quiet --verbose --dry-run --depth=", Paths),
            sub("pull", "-q -v --ff-only --no-rebase --rebase[=] --prune --quiet --verbose --tags --no-edit", Paths),
            sub("push", "-u -n -q -v --set-upstream --dry-run --quiet --verbose --tags --follow-tags", Paths),
            sub("remote", "-v --verbose", Verb("show get-url")),
            sub(
                "stash",
                "-q -u -m= -k --quiet --include-untracked --message= --keep-index",
                Verb("list show push pop apply"),
            ),
            sub("reflog", "-n= -# --date= --all", Verb("show list")),
            sub("worktree", "-v --porcelain --verbose", Verb("list")),
            sub(
                "blame annotate",
                "-L= -w -M -C -e -l -s -c --show-email --date= --porcelain --line-porcelain --abbrev=",
                Revisions,
            ),
            sub(
                "ls-files ls-tree",
                "-c -d -m -o -s -t -u -z -r -l --cached --deleted --modified --others --stage --exclude-standard --name-only \
                --full-name --error-unmatch --long",
                Revisions,
            ),
            sub(
                "rev-parse rev-list merge-base describe name-rev show-ref for-each-ref cherry count-objects cat-file",
                "-v -H -n= -# -p -t -s -e --short[=] --verify -q --quiet --abbrev-ref[=] --show-toplevel --show-prefix \
                --is-inside-work-tree --git-dir --count --all --tags --always --dirty[=] --long --heads --is-ancestor \
                --format= --sort= --max-count= --no-merges --symbolic-full-name --match=",
                Revisions,
            ),
            sub(
                "grep",
                "-n -i -l -L -c -w -v -h -H -E -F -P -q -I -A= -B= -C= --line-number --ignore-case --files-with-matches \
                --count --word-regexp --extended-regexp --fixed-strings --perl-regexp --cached --untracked --heading --break",
                TextThenPaths,
            ),
            sub("version", "--build-options", Nothing),
        ],
    ),
    with(
        "docker podman nerdctl",
        "-v",
        Unlisted::Refused,
        &[
            sub("ps images", "-a -q -n= -l --all --quiet --no-trunc --filter= --format= --size --latest --last=", Text),
            sub("logs", "-f -t -n= --follow --tail= --since= --until= --timestamps --details", Text),
            sub("inspect history port top diff", "-f= --format= -s --size -q --quiet --no-trunc -H --human", Text),
            sub("stats", "-a --all --no-stream --no-trunc --format=", Text),
            sub("info version", "-f= --format=", Nothing),
            sub("compose", "--no-color --tail= -a --all -q --quiet", Verb("ps logs images top version")),
        ],
    ),
    with("docker-compose", "", Unlisted::Refused, &[sub("ps logs images top version", "--tail= -q --quiet -a", Text)]),
    with(
        "kubectl oc",
        "",
        Unlisted::Refused,
        &[
            sub(
                "get describe top",
                "-n= -A -w -l= --namespace= --all-namespaces --watch --selector= --show-labels --sort-by= --no-headers \
                --field-selector= --context=",
                Text,
            ),
            sub(
                "logs",
                "-n= -f -c= -p -l= --namespace= --follow --tail= --since= --container= --previous --timestamps \
                --all-containers --prefix --context=",
                Text,
            ),
            sub("explain version cluster-info api-resources api-versions", "--client --recursive --context=", Text),
            sub("rollout", "-n= --namespace= --context=", Verb("status history")),
        ],
    ),
    with(
        "gh",
        "",
        Unlisted::Refused,
        &[sub(
            "pr issue run release repo workflow label",
            "-L= -s= -l= -a= --limit= --state= --label= --author= --assignee= --json= --comments --log \
            --log-failed --name-only --patch --color=",
            Verb("list view status checks diff"),
        )],
    ),
    with(
        "systemctl",
        "--user --no-pager -l --full -a --all -q --quiet",
        Unlisted::Named { refused: "edit set-environment import-environment link enable" },
        &[sub("status is-active is-enabled is-failed list-units list-timers show cat", "-n= --lines= -a --all", Text)],
    ),
    // The operand is a URL and not a path; the prefix must name it.
    simple(
        "curl",
        "-s -S -f -L -i -I -v --silent --show-error --fail --location --include --head --compressed",
        Nothing,
    ),
    simple("wget", "-q -v -nv --quiet --verbose --no-verbose --spider", Nothing),
    simple("ping", "-c= -n -q -4 -6", Nothing),
    simple(
        "http https xh aria2c dig nslookup host whois nmap traceroute scp sftp rclone telnet nc ftp tftp svn hg jj",
        "",
        Nothing,
    ),
];
