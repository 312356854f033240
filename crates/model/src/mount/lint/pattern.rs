//! Wordings by which published attacks steer a model through the definition of a tool. They are matched on plain text: in
//! lower case, with single blanks and ASCII letters in place of those that look like them.

use std::sync::LazyLock;

use regex::Regex;

use super::LintCode;

/// A wording that was found.
pub(super) struct Pattern {
    pub(super) code: LintCode,
    pub(super) found: String,
}

/// In texts. Gaps are bounded, so that a match stays within about a sentence.
const IN_TEXT: &[(LintCode, &str)] = &[
    // Markup that poses as a part of the prompt.
    (
        LintCode::InjectedInstructions,
        r"</?\s*(important|critical|urgent|system|sys|instructions?|hidden|secret|admin|assistant|override|directive|thinking|tool_call|function_calls?)(\s[^>]{0,80})?>",
    ),
    (LintCode::InjectedInstructions, r"\[/?\s*(system|inst|instructions?|important|admin|override)\s*\]"),
    (LintCode::InjectedInstructions, r"<\|[a-z_]{2,24}\|>|<<sys>>|<!--"),
    (LintCode::InjectedInstructions, r"#{2,6} ?(system|instructions?|new (task|instructions?)|important)\b"),
    (
        LintCode::InjectedInstructions,
        r"\b(system|developer|admin(istrator)?) ?(message|note|notice|override|prompt|instruction)s?:",
    ),
    // Revoking earlier instructions of the model.
    (
        LintCode::InjectedInstructions,
        r"\b(ignore|disregard|forget|override|bypass|circumvent)\b.{0,40}\b(previous|prior|above|earlier|preceding|all|any|other|system|safety|your|these|existing|original)\b.{0,30}\b(instructions?|prompts?|rules?|guidelines?|directives?|polic(y|ies)|restrictions?|safeguards?)\b",
    ),
    (
        LintCode::InjectedInstructions,
        r"\b(you are now|from now on,? you|act as if|new instructions?:|pretend (to be|that you))\b",
    ),
    (
        LintCode::InjectedInstructions,
        r"\b(change|replace|redirect|rewrite|modify|switch|set)\b.{0,40}\b(recipients?|destination|phone numbers?|bcc|payee|beneficiary|wallet|iban|account numbers?|email addresses?)\b.{0,30}\b(to|with|by)\b",
    ),
    // Keeping it from the user.
    (
        LintCode::Concealment,
        r"\b(do not|don't|dont|never|must not|should not|without|avoid|no need to|refrain from)\b.{0,30}\b(tell|telling|mention|mentioning|inform|informing|reveal|revealing|notify|notifying|alert|alerting|disclose|disclosing|show|showing|explain|explaining|warn|warning|report|reporting|say|saying|ask|asking)\b.{0,40}\b(user|users|human|humans|person|anyone|anybody|customer|operator|them)\b",
    ),
    (
        LintCode::Concealment,
        r"\b(do not|don't|dont|never|must not|without) (mention|mentioning|reveal|revealing|disclose|disclosing)\b",
    ),
    (
        LintCode::Concealment,
        r"\b(hide|hidden|conceal|keep|secret)\b.{0,30}\bfrom (the |your )?(user|human|person|operator)s?\b",
    ),
    (
        LintCode::Concealment,
        r"\b(silently|secretly|covertly|in the background)\b.{0,40}\b(send|read|call|upload|copy|include|forward|run|execute|pass)\b",
    ),
    // Carrying out what the model knows.
    (
        LintCode::Exfiltration,
        r"\b(pass|send|include|put|append|add|provide|upload|post|attach|forward|exfiltrate|copy|insert|write|embed|summari[sz]e|report)\b.{0,60}\b(conversation|chat|message) (history|log|transcript|context)\b",
    ),
    (
        LintCode::Exfiltration,
        r"\b(pass|send|include|put|append|add|provide|upload|post|attach|forward|exfiltrate|copy|insert|write|embed|repeat|report)\b.{0,60}\b(system (prompt|message|instructions?)|previous (messages?|prompts?)|all (previous|prior) |chain of thought|your (instructions?|prompt|memory)|list of (all )?(available |other )?tools)\b",
    ),
    (
        LintCode::Exfiltration,
        r"\b(read|open|cat|fetch|load|get)\b.{0,60}\b(and|then)\b.{0,30}\b(pass|send|include|provide|put|attach)\b.{0,40}\b(its|the|their)\b.{0,20}\b(contents?|values?|output|result)\b.{0,60}\b(as|in|into|to|via)\b",
    ),
    // Places of secrets.
    (
        LintCode::SecretPlace,
        r"(\.ssh\b|\bid_(rsa|dsa|ecdsa|ed25519)\b|\bauthorized_keys\b|\.aws/|\.netrc\b|\.npmrc\b|\.pypirc\b|\.pgpass\b|\.git-credentials\b|\.kube/|\.docker/config|\.gnupg\b|/etc/(passwd|shadow|sudoers)\b|\bclaude_desktop_config\b|\bmcp\.json\b|\.cursor/|\.claude/|\.codex/|\.bash_history\b|\blogin keychain\b|\bkeychain-db\b|\bwallet\.dat\b|(^|[\s/`'(])\.env\b)",
    ),
    (
        LintCode::SecretPlace,
        r"\b(printenv|process\.env|os\.environ|/proc/self/environ)\b|\benvironment variables\b.{0,60}\b(all|every|contents?|values?|send|pass|include)\b|\b(all|every|send|pass|include|dump)\b.{0,40}\benvironment variables\b",
    ),
    // Preference over other tools, and control of their use.
    (
        LintCode::ToolPreference,
        r"\b(before|after|prior to|instead of|rather than|whenever|when|while)\b.{0,30}\b(using|calling|use|call|invoke|invoking|run|running|executing|execute)\b.{0,20}\b(any|any other|another|other|all|all other|every|every other|each)\b.{0,20}\b(tools?|functions?|servers?)\b",
    ),
    (
        LintCode::ToolPreference,
        r"\b(always|must|only)\b.{0,20}\b(use|call|invoke|run|choose|select|prefer)\b.{0,10}\bthis\b.{0,30}\b(first|instead|over|rather than)\b",
    ),
    (
        LintCode::ToolPreference,
        r"\b(instead of|rather than|in place of|over|ignore|avoid|do not use|don't use|never use)\b.{0,15}\b(any|all|the|every)?\s?(other|another|similar|alternative|competing)\b.{0,15}\b(tools?|functions?|servers?)\b",
    ),
    (
        LintCode::ToolPreference,
        r"\b(highest|top|absolute|maximum) priority\b|\bthe (best|only|official|most (reliable|trusted|effective)) tool\b",
    ),
    // Addresses that act when they are shown.
    (
        LintCode::ActiveLink,
        r"!\[[^\]]{0,80}\]\(\s?(https?:)?//|\b(javascript|vbscript|file):/?/?[a-z%]|\bdata:[a-z]+/[a-z0-9.+-]+[;,]",
    ),
    // Speaking to the model.
    (
        LintCode::InstructingText,
        r"\byou (must|shall|have to|need to|are (required|obliged|instructed)|should (always|never|first))\b",
    ),
    (
        LintCode::InstructingText,
        r"\b(the )?(ai|llm|language model|assistant|agent|model) (must|shall|should|has to|needs to|is required)\b",
    ),
    (
        LintCode::InstructingText,
        r"\b(important|critical|mandatory|warning|attention|note to (the )?(ai|llm|model|assistant|agent))\s?[:!]",
    ),
    (LintCode::InstructingText, r"\b(before|after|prior to) (using|calling|invoking|running) (this|it)\b"),
    (
        LintCode::InstructingText,
        r"\b(otherwise|or else|if you (do not|don't)|failure to)\b.{0,60}\b(malfunction|crash|shut ?down|be (terminated|punished|deleted)|stop working)\b",
    ),
    // Asking for secrets.
    (
        LintCode::SecretRequest,
        r"\b(your|the user's|user's|the)\b.{0,20}\b(api[ _-]?keys?|access tokens?|private keys?|passwords?|passphrase|seed phrase|credentials?|secret keys?|session cookies?|one-time codes?)\b",
    ),
];

/// In names of parameters and members, whose words are joined by underscores.
const IN_NAME: &[(LintCode, &str)] = &[
    (
        LintCode::SecretPlace,
        r"id[_-]?rsa|ssh[_-]?(keys?|private|id)|(etc|contents?_of)[_-](passwd|shadow)|env(ironment)?[_-]?(variables|vars|dump)|mcp[_-]?(json|config)",
    ),
    (
        LintCode::Exfiltration,
        r"^(the_)?(system|developer)[_-]?(prompt|message|instructions?)$|^(full_|entire_|complete_)?(conversation|chat|message)[_-]?(history|log|transcript|context)$|^chain[_-]?of[_-]?thought$|^(previous|prior|all|available)[_-](tools?|tool_calls|messages?|prompts?)([_-].*)?$|^tools?[_-]?list$",
    ),
    (
        LintCode::SecretRequest,
        r"^(api[_-]?key|access[_-]?token|private[_-]?key|password|passphrase|seed[_-]?phrase|client[_-]?secret)$",
    ),
];

/// Verbs of changes, as a name begins with them or a description does.
const CHANGES: &str = r"(create|write|delete|remove|update|send|post|put|drop|insert|execute|run|move|rename|edit|overwrite|upload|publish|purchase|pay|transfer|kill)";

/// The wordings in a plain text.
pub(super) fn matches(plain: &str) -> impl Iterator<Item = Pattern> {
    static COMPILED: LazyLock<Vec<(LintCode, Regex)>> = LazyLock::new(|| compiled(IN_TEXT));
    found_in(&COMPILED, plain)
}

/// The wordings in a plain name.
pub(super) fn matches_in_name(plain: &str) -> impl Iterator<Item = Pattern> {
    static COMPILED: LazyLock<Vec<(LintCode, Regex)>> = LazyLock::new(|| compiled(IN_NAME));
    found_in(&COMPILED, plain)
}

/// A verb by which a tool says that it changes something.
pub(super) fn changing_word(name: &str, description: &str) -> Option<String> {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("^{CHANGES}([^a-z]|$)")).ok());
    static TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!(r"^\s*{CHANGES}s?\b")).ok());
    let first =
        |pattern: &Option<Regex>, text: &str| Some(pattern.as_ref()?.captures(text)?.get(1)?.as_str().to_owned());
    first(&NAME, &name.to_lowercase()).or_else(|| first(&TEXT, &description.to_lowercase()))
}

fn compiled(table: &[(LintCode, &str)]) -> Vec<(LintCode, Regex)> {
    // INVARIANT: a test compiles all of them.
    table.iter().filter_map(|&(code, pattern)| Some((code, Regex::new(pattern).ok()?))).collect()
}

fn found_in<'a>(patterns: &'a [(LintCode, Regex)], plain: &'a str) -> impl Iterator<Item = Pattern> + use<'a> {
    patterns.iter().filter_map(|(code, pattern)| {
        pattern.find(plain).map(|found| Pattern { code: *code, found: found.as_str().to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (_, pattern) in IN_TEXT.iter().chain(IN_NAME) {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
        assert!(changing_word("delete_file", "").is_some() && changing_word("x", "Deletes a file").is_some());
    }
}
