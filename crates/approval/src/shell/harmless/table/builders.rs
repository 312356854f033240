//! Programs that build, test and check a project. They run its code as the project specifies: options that name another
//! directory, other settings or another program are not listed.

use super::{Granted, NAMED, Nothing, Paths, Program, Subcommand, Tests, Text, Unlisted, Verb, simple, sub, with};

/// The options of a project script, after `--`.
const SCRIPT: &str = "-s --silent --watch[=] --watchAll[=] --coverage --verbose --ci --run --if-present";

const CARGO: &str = "--release --all --workspace --all-targets --all-features --no-default-features --features= -F= -p= \
    --package= --exclude= --lib --bins --bin= --example= --examples --test= --tests --bench= --benches --doc --no-run \
    --no-fail-fast --keep-going -j= --jobs= --profile= --message-format= -q --quiet -v --verbose --locked --offline --frozen \
    --color= --nocapture --show-output --ignored --include-ignored --exact --skip= --test-threads= --list";

const CLIPPY: &str = "--release --all --workspace --all-targets --all-features --no-default-features --features= -F= -p= \
    --package= --exclude= --lib --bins --bin= --example= --examples --test= --tests --bench= --benches --keep-going -j= \
    --jobs= --profile= --message-format= -q --quiet -v --verbose --locked --offline --frozen --color= --no-deps -D= -W= -A=";

const SCRIPTS: &[Subcommand] = &[
    sub("test t tst start stop", SCRIPT, Paths),
    // The prefix must name the script.
    sub("run run-script", SCRIPT, Granted),
    sub(
        "install i ci add update up dedupe prune audit fund outdated root prefix whoami ping licenses",
        "-D --no-audit --no-fund --save-dev --prefer-offline --legacy-peer-deps --json --frozen-lockfile --depth= --production",
        Nothing,
    ),
    sub("ls list ll explain why query", "--depth= --json --all -a --long -l --prod --dev", Text),
];

const YARN: &[Subcommand] = &[
    sub("test start build lint", SCRIPT, Paths),
    sub("run", SCRIPT, Granted),
    sub(
        "install i ci add update up upgrade audit outdated licenses",
        "-D --dev --frozen-lockfile --immutable --offline --prefer-offline --json --production",
        Nothing,
    ),
    sub("ls list why", "--depth= --json --long", Text),
];

pub(super) const PROGRAMS: &[Program] = &[
    with(
        "cargo",
        "-q --quiet -v --verbose -V --list --locked --offline --frozen --color= +nightly +stable +beta",
        Unlisted::Named { refused: "eval exec play script watch with config" },
        &[
            sub("test t bench", CARGO, Text),
            sub("nextest", CARGO, Verb("run list")),
            sub("build b check c doc d clean update fetch generate-lockfile package", CARGO, Nothing),
            // Lints, after `--`.
            sub("clippy", CLIPPY, Nothing),
            sub("fmt", "--all --check -p= --package= -q --quiet -v --verbose", Nothing),
            sub("run r", CARGO, Paths),
            sub(
                "tree metadata",
                "-p= -i= -e= -d --no-deps --format-version= --depth= --duplicates --invert= --edges= --all",
                Nothing,
            ),
            sub("version help", "-v --verbose", Text),
        ],
    ),
    simple("rustfmt", "-v -q -l --check --edition= --verbose --quiet --files-with-diff", Paths),
    with("npm cnpm", "-s --silent -v", Unlisted::Refused, SCRIPTS),
    // Any other word is the name of a program in node_modules.
    with("yarn pnpm yarnpkg", "-s --silent -v", Unlisted::Refused, YARN),
    with(
        "go",
        "",
        Unlisted::Named { refused: "env tool telemetry" },
        &[
            sub(
                "build test vet run fmt",
                "-v -race -run= -count= -timeout= -short -cover -bench= -benchmem -parallel= -failfast -json -tags= -p= -n -a \
                -trimpath -shuffle= -skip=",
                Paths,
            ),
            sub("list", "-m -json -deps -test -f= -e", Paths),
            sub("doc version", "-all -short -src -u -m -v", Text),
            sub("mod", "-v -x -m -json", Verb("tidy verify graph why")),
            // The prefix must name the module.
            sub("get install clean", "-v -u -t", Nothing),
        ],
    ),
    with(
        "dotnet",
        "--info",
        Unlisted::Refused,
        &[sub(
            "build clean test restore list format",
            "-c= -v= --configuration= --verbosity= --no-restore --no-build --nologo --filter= --verify-no-changes",
            Paths,
        )],
    ),
    with(
        "pip pip3",
        "-q --quiet -v --verbose",
        Unlisted::Refused,
        &[
            sub("list show freeze check", "-v --outdated --uptodate --format= --local --user --files --verbose", Text),
            sub(
                "install",
                "-r=/ -U -q --requirement=/ --upgrade --quiet --user --no-deps --no-cache-dir --disable-pip-version-check",
                Nothing,
            ),
        ],
    ),
    with(
        "uv",
        "-q --quiet -v --verbose",
        Unlisted::Refused,
        &[
            sub(
                "sync lock tree version build add remove",
                "-q --frozen --locked --offline --dev --no-dev --all-extras",
                Nothing,
            ),
            sub("pip", "-q --quiet", Verb("list show freeze check tree")),
        ],
    ),
    with("pipenv", "", Unlisted::Refused, &[sub("check graph install lock sync", "--dev -d --deploy", Nothing)]),
    with(
        "poetry",
        "-q -n --no-interaction",
        Unlisted::Refused,
        &[sub(
            "check install lock show build version update add remove",
            "--sync --no-root --tree -t --latest -l",
            Nothing,
        )],
    ),
    with(
        "rustup",
        "",
        Unlisted::Refused,
        &[sub("show check update", "-v", Nothing), sub("component target toolchain", "--installed", Verb("list"))],
    ),
    with(
        "bundle bundler",
        "",
        Unlisted::Refused,
        &[sub("check install list outdated show info version", "--quiet --verbose --jobs= --retry=", Nothing)],
    ),
    simple(
        "pytest py.test",
        "-q -v -x -s -l -k= -m= -n= -r= --maxfail= --tb= --lf --ff --nf --sw --durations= --co --collect-only --no-header \
        --color= --strict-markers --last-failed --failed-first --stepwise --exitfirst --verbose --quiet --showlocals",
        Tests,
    ),
    simple(
        "mypy",
        "-v --strict --ignore-missing-imports --no-error-summary --show-error-codes --pretty --no-color-output \
        --check-untyped-defs --disallow-untyped-defs --warn-unused-ignores",
        Paths,
    ),
    with(
        "ruff",
        "-q -v --quiet --verbose",
        NAMED,
        &[sub("check format", "--fix --diff --check -q -v --select= --ignore= --no-cache --statistics", Paths)],
    ),
    simple(
        "black isort",
        "--check --check-only --diff -q -v -l= --line-length= --fast --profile= --quiet --verbose",
        Paths,
    ),
    simple("flake8", "--max-line-length= --select= --ignore= --count --statistics -q -v", Paths),
    simple("eslint", "--fix --quiet --max-warnings= --ext= --no-color --color", Paths),
    simple("prettier", "--check -c --list-different -l --write -w --no-color", Paths),
    simple("tsc", "--noEmit --watch -w --pretty --strict --skipLibCheck -b --build", Paths),
    simple(
        "jest",
        "--watch[=] --watchAll[=] --coverage[=] --ci --verbose --silent -t= --testNamePattern= --runInBand -i --bail[=] \
        --passWithNoTests --onlyChanged -o",
        Paths,
    ),
    // The prefix must name targets and tasks.
    simple(
        "make gmake",
        "-j[=] -k -s -n -B -q --jobs[=] --keep-going --silent --quiet --dry-run --always-make --question",
        Nothing,
    ),
    simple("just", "-l -n -q --list --dry-run --quiet --summary", Nothing),
    simple("rake", "-n -q -T -P --tasks --dry-run --quiet", Nothing),
    simple(
        "gradle gradlew",
        "-q -i -d -s --info --debug --stacktrace --quiet --offline --no-daemon --daemon --parallel --continue --tests= \
        --rerun-tasks --build-cache --no-build-cache --warning-mode= --console=",
        Nothing,
    ),
    simple(
        "mvn mvnw",
        "-q -B -o -e -X -U -T= -ntp --quiet --batch-mode --offline --errors --debug --no-transfer-progress",
        Nothing,
    ),
    simple("ninja", "-v -n -k= -j=", Nothing),
    simple("ctest", "-V -VV -R= -E= -j[=] -N --output-on-failure --verbose --parallel=", Nothing),
    simple("cmake", "--build=/ --target= --config= --parallel[=] -j[=]", Nothing),
    with(
        "terraform tofu",
        "",
        Unlisted::Named { refused: "console" },
        &[sub("fmt validate version show output", "-check -diff -recursive -json -no-color", Paths)],
    ),
    // A file of arguments, a plugin or a linker would be an option.
    simple("bazel bazelisk", "", Nothing),
];
