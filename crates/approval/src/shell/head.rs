//! First words that cannot be a prefix, because with any arguments they can run anything. Each group has its reason.

/// Names with the same reason.
struct Group {
    reason: &'static str,
    /// Separated by blanks.
    names: &'static str,
}

/// Why a command that begins with this word cannot be granted by a prefix, if it cannot.
pub(super) fn objection(word: &str) -> Option<&'static str> {
    let names = names(word);
    let is_named = |group: &&Group| group.names.split(' ').any(|name| names.iter().any(|own| own == name));
    GROUPS.iter().find(is_named).map(|group| group.reason)
}

/// The names under which the tables may list a program: without its directory and the suffix `.exe`, in lower case, as
/// some file systems compare, and also without its version, as in `python3.12`.
pub(super) fn names(word: &str) -> [String; 2] {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name).to_owned();
    let unversioned = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || ".-".contains(letter)).to_owned();
    [name, unversioned]
}

const GROUPS: &[Group] = &[
    Group {
        reason: "is a shell, which runs any command",
        names: "ash bash busybox cmd command.com csh dash elvish fish git-shell ksh mksh nu oksh osh pdksh powershell \
            pwsh rbash rksh rzsh sh tcsh toybox wsl xonsh yash ysh zsh",
    },
    Group {
        reason: "is an interpreter, which runs any code",
        names: "awk bun clisp clojure deno elixir erl escript expect gawk ghci gnuplot groovy guile iex ipython irb \
            java jjs jrunscript jshell julia kotlin lua luajit m4 mawk nawk node nodejs octave original-awk \
            osascript perl php psysh pypy python pythonw qjs r racket rscript ruby runghc runhaskell sbcl scala sed \
            gsed swipl tclsh ts-node tsx wish",
    },
    Group {
        reason: "starts any program that its arguments name",
        names: "ansible apply at batch bunx bwrap caffeinate capsh chpst chroot chrt command conda corepack cpulimit crontab \
            daemonize dbus-run-session direnv doas dotenv entr env envdir fakeroot faketime firejail \
            flock hatch hyperfine ionice ld-linux-x86-64.so ld.so ltrace mamba mosh ncat netcat nc nice nix \
            nix-shell nodemon nohup npx nsenter numactl op open parallel pssh pdm perf pipx pkexec prlimit \
            proot proxychains psexec rlwrap rsh run-parts runas runuser rye screen script setarch setpriv \
            setsid setuidgid socat softlimit ssh sshpass start start-stop-daemon stdbuf strace su sudo systemd-run \
            taskset tclkit time timeout tini tmux torify torsocks trickle tsocks unbuffer unshare uvx valgrind \
            watch watchexec winpty x-terminal-emulator xargs xdg-open xterm xvfb-run",
    },
    Group {
        reason: "can start a shell",
        names: "cscope dc ed emacs emacsclient ex ftp gdb helix hx info jdb kak less lftp lldb man more most mutt mysql \
            nano nvim pdb pg pico psql red rview rvim sqlite sqlplus telnet vi view vim vimdiff",
    },
    Group {
        reason: "changes how the shell interprets what follows, or runs its arguments",
        names: ". alias bind builtin caller compgen complete compopt coproc declare dirs disown enable eval exec exit \
            export fc getopts hash history jobs let local logout mapfile read readarray readonly return set shift \
            shopt source suspend trap typeset ulimit umask unalias unset",
    },
    Group {
        reason: "is a shell keyword and not a program",
        names: "case do done elif else esac fi for function if in select then until while",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_any_spelling_of_its_name() {
        for word in ["python", "python3", "python3.12", "/usr/bin/python3", "PYTHON.EXE", "./Python-3"] {
            assert!(objection(word).is_some(), "{word}");
        }
        for word in ["cargo", "pytest", "shellcheck", "npm", "timeouts", "environment"] {
            assert_eq!(objection(word), None, "{word}");
        }
    }

    #[test]
    fn every_name_in_the_table_can_be_found() {
        for name in GROUPS.iter().flat_map(|group| group.names.split(' ')) {
            assert!(objection(name).is_some(), "{name}");
        }
    }
}
