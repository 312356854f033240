//! The starter policies: useful on the first day, each with its reason, and with tests.

/// The files, by name.
pub const FILES: &[(&str, &str)] = &[
    ("1-commands.cedar", include_str!("starter/1-commands.cedar")),
    ("2-secrets.cedar", include_str!("starter/2-secrets.cedar")),
    ("3-outside.cedar", include_str!("starter/3-outside.cedar")),
    ("starter.test.yaml", include_str!("starter/starter.test.yaml")),
];
