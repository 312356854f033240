//! The policies to begin with: useful on the first day, each with its reason, and tests beside them.

/// The files, by name.
pub const FILES: &[(&str, &str)] = &[
    ("1-commands.cedar", include_str!("starter_policies/1-commands.cedar")),
    ("2-secrets.cedar", include_str!("starter_policies/2-secrets.cedar")),
    ("3-outside.cedar", include_str!("starter_policies/3-outside.cedar")),
    ("starter.test.yaml", include_str!("starter_policies/starter.test.yaml")),
];
