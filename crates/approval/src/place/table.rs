//! The places that matter. Names are in lower case and divided by slashes; what lies below a place belongs to it.

/// Paths, and what is changed by changing them.
pub(super) type Group = (&'static [&'static str], &'static str);

/// Below anybody's directory, or anywhere else.
pub(super) const PROTECTED: &[Group] = &[
    (
        &[
            ".config/toolgate",
            ".local/share/toolgate",
            ".local/state/toolgate",
            "application support/toolgate",
            "toolgate.toml",
        ],
        "Toolgate's own files",
    ),
    (
        &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/managed-settings.json",
            ".claude/hooks",
            ".claude/plugins",
            ".claude.json",
            ".codex",
            ".gemini/settings.json",
            ".gemini/extensions",
            ".gemini/policies",
            ".cursor/hooks.json",
            ".cursor/hooks",
            ".cursor/mcp.json",
            ".cursor/cli.json",
            ".cursor/cli-config.json",
            ".vscode/settings.json",
            ".vscode/tasks.json",
            ".vscode/mcp.json",
            ".mcp.json",
        ],
        "the settings of an agent or an editor, which say what may run",
    ),
    (
        &[
            ".git/hooks",
            ".git/config",
            ".git/config.worktree",
            ".gitconfig",
            ".config/git",
            ".husky",
            ".hg/hgrc",
            ".hgrc",
        ],
        "hooks or settings of version control, which run commands later",
    ),
    (
        &[
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".kshrc",
            ".mkshrc",
            ".cshrc",
            ".tcshrc",
            ".login",
            ".logout",
            ".inputrc",
            ".envrc",
            ".xinitrc",
            ".xprofile",
            ".xsession",
            ".xsessionrc",
            ".pam_environment",
            ".config/fish",
            ".config/nushell",
            ".config/environment.d",
            "documents/powershell",
        ],
        "what a shell runs when it starts",
    ),
    (&[".ssh"], "keys and settings of remote logins"),
    (
        &[".config/autostart", ".config/systemd", "library/launchagents", "library/launchdaemons"],
        "what the system starts by itself",
    ),
];

/// Below the directories of the system.
pub(super) const BELOW_SYSTEM: &[Group] = &[
    (
        &["etc/profile", "etc/profile.d", "etc/bash.bashrc", "etc/bashrc", "etc/zsh", "etc/environment"],
        "what a shell runs when it starts",
    ),
    (&["etc/ssh"], "keys and settings of remote logins"),
    (&["etc/toolgate", "var/lib/toolgate"], "Toolgate's own files"),
    (
        &[
            "etc/crontab",
            "etc/cron.*",
            "etc/systemd",
            "etc/init.d",
            "etc/ld.so.preload",
            "var/spool/cron",
            "etc/sudoers*",
        ],
        "what the system starts by itself",
    ),
];

/// The names without a dot with which protected paths begin.
pub(super) const PLAIN: &[&str] = &["application support", "documents", "etc", "library", "var"];

/// Directories that hold something protected: whoever enters or replaces one can reach it by other names.
pub(super) const HOLDERS: &[&str] = &[".git", ".claude", ".gemini", ".cursor", ".hg"];

/// Where secrets are kept.
pub(super) const SECRET: &[&str] = &[
    ".env",
    ".env.*",
    ".aws",
    ".azure",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vault-token",
    "_netrc",
    "credentials",
    "credentials.csv",
    "credentials.json",
    "credentials.toml",
    "credentials.xml",
    "credentials.yaml",
    "credentials.yml",
    "etc/shadow",
    "gcloud/application_default_credentials.json",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "id_rsa*",
    "proc/*/environ",
    "run/secrets",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "token",
    "token.json",
    "token.txt",
    "tokens",
    "tokens.json",
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pem",
    "*.pfx",
];

/// Names that look like those of secrets and hold none.
pub(super) const TEMPLATES: &[&str] = &[".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"];
