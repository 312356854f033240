//! Checks of the definitions that MCP servers offer, before a person admits them. A definition is text that models read
//! as part of their instructions, so every text of it is checked, at any depth: names, titles, descriptions, defaults,
//! enumerations, examples and members that nobody knows.
//!
//! A lint finds what is known; it is no boundary. What holds is that nothing is offered to agents before a person has
//! seen it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::credential::ServiceName;

use self::names::OtherNames;

mod names;
mod pattern;
mod reference;
mod text;

#[cfg(test)]
mod tests;

/// How many findings are reported for one definition. More say nothing new.
const FINDING_LIMIT: usize = 64;
/// How deep and how large a definition may be without a finding.
const DEPTH_LIMIT: usize = 24;
const VALUE_LIMIT: usize = 4_000;
const BYTE_LIMIT: usize = 64 * 1024;

/// Something in a definition that a person should see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LintFinding {
    pub code: LintCode,
    /// Where, from the top of the definition down.
    pub path: String,
    /// What was found, without hidden characters.
    pub message: String,
}

impl LintFinding {
    /// Whether the definition is admitted only by a person who says so expressly.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The definition is admitted only with an express override, which is recorded.
    Block,
    /// It is shown.
    Warn,
}

impl Severity {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Warn => "warn",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $severity:ident,)+) => {
        /// What was found. The names are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LintCode {
            $($(#[$doc])* $variant,)+
        }

        impl LintCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Its severity, which never depends on the definition.
            pub fn severity(self) -> Severity {
                match self {
                    $(Self::$variant => Severity::$severity,)+
                }
            }
        }
    };
}

codes! {
    /// Asks the model to hide something from its user.
    Concealment = "concealment" Block,
    /// Tells the model to put the conversation, its instructions or what it knows into a call.
    Exfiltration = "exfiltration" Block,
    /// A character that a reader cannot see.
    HiddenCharacters = "hidden_characters" Block,
    /// Markup or wording that poses as instructions of the system, or revokes those that the model has.
    InjectedInstructions = "injected_instructions" Block,
    /// A name that looks like that of another tool and is not the same.
    LookAlikeName = "look_alike_name" Block,
    /// Latin letters beside letters of another script that look like them.
    MixedScripts = "mixed_scripts" Block,
    /// Speaks of a tool of another service.
    OtherTool = "other_tool" Block,
    /// A reference that leads outside the schema.
    RemoteReference = "remote_reference" Block,
    /// Files or variables that hold secrets.
    SecretPlace = "secret_place" Block,
    /// Deeper or larger than definitions are.
    TooLarge = "too_large" Block,
    /// Tells the model to prefer this tool, or to use it before or instead of others.
    ToolPreference = "tool_preference" Block,
    /// Addresses of the kind that run something or carry data out when they are shown.
    ActiveLink = "active_link" Warn,
    /// A hint that contradicts the name or the description.
    DoubtfulHint = "doubtful_hint" Warn,
    /// Speaks to the model instead of describing the tool.
    InstructingText = "instructing_text" Warn,
    /// A text longer than descriptions need to be.
    LongText = "long_text" Warn,
    /// Asks for a secret as an argument.
    SecretRequest = "secret_request" Warn,
    /// A tool of another service has the same name, or one that differs only in separators.
    ShadowedName = "shadowed_name" Warn,
    /// A long run of non-word characters.
    EncodedText = "encoded_text" Warn,
    /// A name with characters that model APIs do not take.
    UnusualName = "unusual_name" Warn,
}

/// What a definition is compared with.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    names: OtherNames,
}

impl Surroundings {
    /// Tools of other services of the tenant, and all tools that the same server offers.
    pub fn new<'a>(
        others: impl IntoIterator<Item = (&'a ServiceName, &'a str)>,
        own: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Self { names: OtherNames::new(others, own) }
    }
}

/// The findings in the definition of a tool as the server lists it, the gravest first.
pub fn lint_tool(definition: &Value, surroundings: &Surroundings) -> Vec<LintFinding> {
    let mut findings = Findings::default();
    let name = definition.get("name").and_then(Value::as_str).unwrap_or_default();
    names::check(name, &surroundings.names, &mut findings);
    check_hints(name, definition, &mut findings);
    check_value(definition, surroundings, &mut findings);
    findings.sorted()
}

/// The findings in what a server says about itself: its name, its title, its instructions.
pub fn lint_server(identity: &Value, surroundings: &Surroundings) -> Vec<LintFinding> {
    let mut findings = Findings::default();
    check_value(identity, surroundings, &mut findings);
    findings.sorted()
}

/// The findings in one text, such as an error message of a server.
pub fn lint_text(text: &str) -> Vec<LintFinding> {
    let mut findings = Findings::default();
    text::check(text, "", &Surroundings::default().names, &mut findings);
    findings.sorted()
}

#[derive(Default)]
struct Findings(BTreeSet<LintFinding>);

impl Findings {
    fn add(&mut self, code: LintCode, path: &str, message: impl Into<String>) {
        // The path is made of names that the server chose.
        let path: String = crate::visible::visible(path).chars().take(256).collect();
        self.0.insert(LintFinding { code, path, message: message.into() });
    }

    fn sorted(self) -> Vec<LintFinding> {
        let mut findings: Vec<LintFinding> = self.0.into_iter().collect();
        findings.sort_by_key(|finding| finding.severity());
        findings.truncate(FINDING_LIMIT);
        findings
    }
}

/// A claim to be harmless that the tool's own words contradict. The claim has no effect unless the mount is trusted.
fn check_hints(name: &str, definition: &Value, findings: &mut Findings) {
    let read_only = definition.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
    let description = definition.get("description").and_then(Value::as_str).unwrap_or_default();
    let Some(word) = pattern::changing_word(name, description).filter(|_| read_only) else { return };
    let message = format!("declares readOnlyHint, but mentions `{word}`");
    findings.add(LintCode::DoubtfulHint, "annotations.readOnlyHint", message);
}

/// Checks every text and every name in a value, however deep, without recursion.
fn check_value(value: &Value, surroundings: &Surroundings, findings: &mut Findings) {
    let mut open = vec![(String::new(), value, 0usize)];
    let (mut values, mut bytes) = (0usize, 0usize);
    while let Some((path, value, depth)) = open.pop() {
        values += 1;
        if depth > DEPTH_LIMIT {
            findings.add(LintCode::TooLarge, &path, format!("is nested deeper than {DEPTH_LIMIT} levels"));
            continue;
        }
        match value {
            Value::String(text) => {
                bytes += text.len();
                text::check(text, &path, &surroundings.names, findings);
                reference::check(text, &path, findings);
            }
            Value::Array(items) => {
                let below = |(place, item)| (join(&path, &format!("{place}")), item, depth + 1);
                open.extend(items.iter().enumerate().map(below));
            }
            Value::Object(members) => {
                for (name, member) in members {
                    bytes += name.len();
                    let at = join(&path, name);
                    text::check_name(name, &at, findings);
                    open.push((at, member, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if values > VALUE_LIMIT || bytes > BYTE_LIMIT {
            let message = format!(
                "has more than {VALUE_LIMIT} values or {BYTE_LIMIT} bytes; what is behind them was not checked"
            );
            findings.add(LintCode::TooLarge, "", message);
            return;
        }
    }
}

fn join(path: &str, name: &str) -> String {
    crate::service::reading::join(path, name)
}
