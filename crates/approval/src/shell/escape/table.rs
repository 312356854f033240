//! The table of arguments that are left to a person, program by program. To add one, add a line here; the tests try
//! every line. A program that is not here is taken to do what its name says.

/// Words divided by blanks.
pub(super) type List = &'static str;

/// What is known of a program.
#[derive(Debug)]
pub(super) struct Program {
    /// Its names, in lower case and without versions. The first is used in messages.
    pub names: List,
    /// Which subcommands are taken to be harmless.
    pub subcommands: Subcommands,
    /// What may stand before the subcommand, each as it is or, with a `*` at its end, as a beginning; nothing else may.
    pub early: List,
    /// What is refused, with any subcommand or none. `--name` also matches its abbreviations and
    /// `--name=value`, `-x` also stands for that letter among others (`-vx`), `-name` also matches `--name` and
    /// `-name=value`, `beginning*` and `*part` match what begins with it and what contains it, and all else is a word.
    pub anywhere: List,
    /// What is refused with one subcommand.
    pub below: &'static [(&'static str, List)],
    /// Whether the first argument may be a bundle of options without a dash.
    pub dashless: bool,
}

/// The subcommands of a program.
#[derive(Debug)]
pub(super) enum Subcommands {
    /// It has none that matter.
    None,
    /// These are harmless. Others may be plugins, aliases or programs.
    Only(List),
    /// These are refused.
    AllBut(List),
}

/// A program whose first argument means nothing special.
const fn simple(names: List, refused: List) -> Program {
    Program { names, subcommands: Subcommands::None, early: "", anywhere: refused, below: &[], dashless: false }
}

/// A program of which only some subcommands are harmless, whatever their arguments.
const fn only(names: List, subcommands: List) -> Program {
    Program {
        names,
        subcommands: Subcommands::Only(subcommands),
        early: "--version",
        anywhere: "",
        below: &[],
        dashless: false,
    }
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "git",
        // `config` could set an alias or a pager; unknown ones are aliases or programs named `git-...`.
        subcommands: Subcommands::Only(
            "add am apply archive bisect blame branch bundle cat-file check-attr check-ignore checkout cherry \
            cherry-pick clean clone commit count-objects describe diff diff-files diff-index diff-tree fetch \
            for-each-ref format-patch fsck gc grep hash-object init log ls-files ls-remote ls-tree merge merge-base \
            merge-tree mv name-rev notes prune pull push range-diff rebase reflog remote reset restore rev-list \
            rev-parse revert rm shortlog show show-branch show-ref sparse-checkout stash status submodule switch \
            symbolic-ref tag update-ref verify-commit verify-tag version whatchanged worktree write-tree",
        ),
        early: "--version --no-pager -P --no-optional-locks --no-replace-objects --no-lazy-fetch --literal-pathspecs \
            --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-advice",
        anywhere: "--config-env --exec --exec-path --ext-diff --open-files-in-pager --output --receive-pack \
            --strategy --template --upload-pack",
        below: &[
            ("archive", "-o *::"),
            ("bisect", "run visualize view"),
            ("clone", "-c --config -u *::"),
            ("fetch", "*::"),
            ("format-patch", "-o --output-directory"),
            ("grep", "-O"),
            ("ls-remote", "*::"),
            ("merge", "-s"),
            ("pull", "-s *::"),
            ("push", "*::"),
            ("rebase", "-x -i --interactive -s"),
            ("remote", "*::"),
            ("submodule", "foreach *::"),
        ],
        dashless: false,
    },
    Program {
        names: "cargo",
        // These run a command line of their own.
        subcommands: Subcommands::AllBut("eval exec play script watch with"),
        early: "-q --quiet -v -vv --verbose -V --version -h --help --list --locked --offline --frozen +nightly* +stable* \
            +beta* +1*",
        anywhere: "--config",
        below: &[("clippy", "-C* -Z* --codegen"), ("rustc", "-C* -Z* --codegen"), ("rustdoc", "-C* -Z* --codegen")],
        dashless: false,
    },
    Program {
        names: "npm cnpm",
        subcommands: Subcommands::Only(
            "add audit ci dedupe explain fund i info install list ll ls outdated pack ping prefix prune query root \
            run run-script search show start stop t test tst uninstall update version view whoami why",
        ),
        early: "-s --silent -v --version -h --help",
        anywhere: "--browser --call --editor --git --globalconfig --node-options --script-shell --shell --userconfig \
            --viewer",
        below: &[],
        dashless: false,
    },
    Program {
        names: "yarn pnpm yarnpkg",
        // Any other word is the name of a program in node_modules.
        subcommands: Subcommands::Only(
            "add audit build ci i info install licenses lint list ls outdated remove run start test up update \
            upgrade why",
        ),
        early: "-s --silent -v --version -h --help",
        anywhere: "--config --node-options --script-shell --shell-mode --use-yarnrc --userconfig -c",
        below: &[],
        dashless: false,
    },
    Program {
        names: "go",
        subcommands: Subcommands::AllBut("env tool telemetry"),
        early: "",
        anywhere: "-asmflags -exec -fixtool -gccgoflags -gcflags -ldflags -modfile -overlay -toolexec -vettool",
        below: &[("run", "*@")],
        dashless: false,
    },
    Program {
        names: "docker podman nerdctl",
        subcommands: Subcommands::Only("diff events history images info inspect logs port ps search stats top version"),
        early: "-v --version",
        anywhere: "",
        below: &[],
        dashless: false,
    },
    Program {
        names: "kubectl oc",
        subcommands: Subcommands::Only(
            "api-resources api-versions cluster-info describe diff explain get logs rollout top version",
        ),
        early: "",
        anywhere: "--kubeconfig",
        below: &[],
        dashless: false,
    },
    Program {
        names: "gh",
        // Any other word may be an alias that runs a shell, or an extension.
        subcommands: Subcommands::Only("gist issue label pr release repo run search status version workflow"),
        early: "--version",
        anywhere: "",
        below: &[],
        dashless: false,
    },
    Program {
        names: "bundle bundler",
        subcommands: Subcommands::Only("check info install list outdated show update version"),
        early: "",
        anywhere: "",
        below: &[],
        dashless: false,
    },
    Program {
        names: "dotnet",
        subcommands: Subcommands::Only("build clean format list restore test"),
        early: "--version --info",
        anywhere: "-p* --property /p* @*",
        below: &[],
        dashless: false,
    },
    Program {
        names: "systemctl",
        subcommands: Subcommands::AllBut("edit"),
        early: "--user --no-pager",
        anywhere: "",
        below: &[],
        dashless: false,
    },
    only("docker-compose", "config images logs ps top version"),
    only("pipenv", "check graph install lock sync"),
    only("poetry", "add build check install lock remove show update version"),
    only("rustup", "check component show target toolchain update"),
    only("uv", "add build lock pip remove sync tree version"),
    Program {
        names: "tar gtar bsdtar",
        subcommands: Subcommands::None,
        early: "",
        anywhere: "-F -I --checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command \
            --to-command --use-compress-program",
        below: &[],
        dashless: true,
    },
    simple("apt apt-get aptitude", "-o --option -c --config-file"),
    simple("bazel bazelisk", "--bazelrc --run_under --shell_executable --workspace_status_command"),
    simple("c++ cc clang clang++ g++ gcc", "-B* -fplugin* -fuse-ld* -load -specs -wrapper -Xclang @*"),
    simple("cmake", "-C* -D* -E* -P* --toolchain"),
    simple("ctest", "-D* -S* --build-and-test --overwrite --script"),
    simple(
        "curl",
        "-c -D -K -o -O --config --cookie-jar --dump-header --engine --etag-save --hsts --libcurl --output \
        --output-dir --remote-name --remote-name-all --stderr --trace --trace-ascii",
    ),
    simple("dnf yum", "-c --config --setopt"),
    simple("diff3 sdiff", "--diff-program"),
    simple("fd fdfind", "-x -X --exec --exec-batch"),
    simple("find gfind", "-delete -exec -execdir -fls -fprint -fprint0 -fprintf -ok -okdir"),
    simple("gradle gradlew", "-b -c -D* -I -P* --build-file --init-script --settings-file"),
    simple("helm", "--kubeconfig --post-renderer plugin"),
    simple("make gmake", "-E -f -I --eval --file --include-dir --makefile *= *$"),
    simple("mvn mvnw", "-D* -f -gs -s --file --settings *exec:"),
    simple("ninja", "-f -t"),
    simple("patch", "-e -o --ed --output"),
    simple("pip", "--config-settings --editor --global-option --python config"),
    simple("printf", "-v"),
    simple("pytest py.test", "-c -o -p --confcutdir --config-file --override-ini --pdb --pdbcls --rootdir"),
    simple("eslint", "-c -f --config --format --parser --plugin --resolve-plugins-relative-to --rulesdir"),
    simple("jest", "-c --config --globalSetup --runner --setupFiles --testRunner --transform"),
    simple("just", "-c -f --command --justfile --set --shell --shell-arg"),
    simple("mocha", "-r --config --require"),
    simple("mypy", "--config-file --python-executable"),
    simple("prettier", "--config --plugin"),
    simple("rake", "-e -E -f -p -r -R --execute --rakefile --require"),
    simple("rg", "-z --hostname-bin --pre --search-zip"),
    simple("rsync", "-e --rsh --rsync-path"),
    simple("rustc rustdoc", "-C* -Z* --codegen --test-runtool @*"),
    simple("scp sftp", "-b -D -F -J -o -S"),
    simple("shuf", "-o --output"),
    simple("sort gsort", "-o --compress-program --output"),
    simple("split gsplit", "--filter"),
    // In bash these, like printf, evaluate an index in the name of a variable, and a command within it.
    simple("test", "-v -R"),
    simple("wait", "-p"),
    simple("tree", "-o"),
    simple("wget", "-e -O -o -P --config --directory-prefix --execute --output-document --output-file --use-askpass"),
    simple("zip", "-T --unzip-command"),
];
