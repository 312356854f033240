//! Finds rules and their annotations in Cedar source. It tokenizes only enough to separate rules; the gate parses them.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleText {
    /// From its annotation, or else its file and its position.
    pub(super) id: String,
    /// `deny`, `ask` or `redact`.
    pub(super) effect: String,
    pub(super) shadow: bool,
    /// Its tokens, without comments and whitespace.
    words: Vec<String>,
    /// The position of `@mode` in the text.
    mode: Option<Range<usize>>,
}

impl RuleText {
    /// Whether it is the same apart from formatting.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

pub(super) fn rules(file: &str, text: &str) -> Vec<RuleText> {
    let stem = file.strip_suffix(".cedar").unwrap_or(file);
    let words = words(text);
    let rules = words.split(|word| word.text == ";").filter(|words| !words.is_empty());
    rules.enumerate().map(|(place, words)| rule(words, &format!("{stem}:{}", place + 1))).collect()
}

/// The text without shadow mode of this rule; `None` if the rule is missing or not in shadow mode.
pub(super) fn promoted(file: &str, text: &str, id: &str) -> Option<String> {
    let rule = rules(file, text).into_iter().find(|rule| rule.id == id && rule.shadow)?;
    let mode = rule.mode?;
    let (before, after) = (text.get(..mode.start)?, text.get(mode.end..)?);
    let line_before = before.trim_end_matches([' ', '\t']);
    let line_after = after.trim_start_matches([' ', '\t', '\r']);
    let alone = line_before.is_empty() || line_before.ends_with('\n');
    match line_after.strip_prefix('\n') {
        // An annotation on its own line is removed with the line.
        Some(rest) if alone => Some(format!("{line_before}{rest}")),
        _ => Some(format!("{before}{line_after}")),
    }
}

struct Word<'a> {
    text: &'a str,
    place: Range<usize>,
}

fn rule(words: &[Word<'_>], unnamed: &str) -> RuleText {
    let mut rule = RuleText {
        id: unnamed.to_owned(),
        effect: "deny".to_owned(),
        shadow: false,
        words: words.iter().map(|word| word.text.to_owned()).collect(),
        mode: None,
    };
    let mut rest = words;
    // Annotations precede the effect.
    while let [at, name, open, value, close, after @ ..] = rest {
        if at.text != "@" || open.text != "(" || close.text != ")" {
            break;
        }
        let said = value.text.trim_matches('"');
        match name.text {
            "id" => said.clone_into(&mut rule.id),
            "remedy" => said.clone_into(&mut rule.effect),
            "mode" => {
                rule.shadow = said == "shadow";
                rule.mode = Some(at.place.start..close.place.end);
            }
            _ => {}
        }
        rest = after;
    }
    rule
}

/// Tokens: names and numbers, strings, and other characters one by one.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = match rest.chars().next() {
            Some(letter) if letter.is_whitespace() => {
                start += letter.len_utf8();
                continue;
            }
            Some('/') if rest.starts_with("//") => {
                start += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            Some('"') => string_length(rest),
            Some(letter) if is_of_a_name(letter) => rest.find(|letter| !is_of_a_name(letter)).unwrap_or(rest.len()),
            letter => letter.map_or(1, char::len_utf8),
        };
        let place = start..start + length;
        words.extend(text.get(place.clone()).map(|text| Word { text, place: place.clone() }));
        start = place.end;
    }
    words
}

/// The length of a string with its quotes; to the end of the text if it is not closed.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"// Nobody; not even "them".
@id("no-exec") @remedy("ask")
@mode("shadow")
@reason("say \"why\"; then wait")
forbid (principal, action, resource) when { resource.tier == "exec;" };

forbid (principal, action, resource); // the second
"#;

    #[test]
    fn a_rule_ends_at_a_semicolon_that_is_in_no_string_and_no_comment() {
        let rules = rules("shell.cedar", TWO);
        let described: Vec<_> =
            rules.iter().map(|rule| (rule.id.as_str(), rule.effect.as_str(), rule.shadow)).collect();
        assert_eq!(described, [("no-exec", "ask", true), ("shell:2", "deny", false)]);
        assert_eq!(super::rules("a.cedar", "// nothing\n"), []);
        assert_eq!(super::rules("a.cedar", "forbid (\"open").len(), 1);
    }

    #[test]
    fn layout_and_comments_are_no_change() {
        let one = &rules("a.cedar", "@id(\"x\")\nforbid(principal,action,resource);")[0];
        let same = &rules("b.cedar", "// new\n@id( \"x\" ) forbid (principal, action, resource) ;")[0];
        let other = &rules("a.cedar", "@id(\"x\")\nforbid(principal,action,resource) when { true };")[0];
        let spaced = &rules("a.cedar", "@id(\"x\")\nforbid(principal == Agent::\"a b\",action,resource);")[0];
        let closer = &rules("a.cedar", "@id(\"x\")\nforbid(principal == Agent::\"a  b\",action,resource);")[0];
        assert!(one.says_the_same(same));
        assert!(!one.says_the_same(other) && !spaced.says_the_same(closer));
    }

    #[test]
    fn promotion_takes_out_the_mode_and_nothing_else() {
        assert_eq!(promoted("shell.cedar", TWO, "no-exec").unwrap(), TWO.replace("@mode(\"shadow\")\n", ""));
        let inline = "@mode(\"shadow\") @id(\"x\") forbid (principal, action, resource);\n";
        assert_eq!(promoted("a.cedar", inline, "x").unwrap(), "@id(\"x\") forbid (principal, action, resource);\n");
        let indented = "@id(\"x\")\r\n  @mode(\"shadow\")\r\nforbid (principal, action, resource);";
        assert_eq!(promoted("a.cedar", indented, "x").unwrap(), "@id(\"x\")\r\nforbid (principal, action, resource);");
        assert_eq!(promoted("shell.cedar", TWO, "shell:2"), None);
        assert_eq!(promoted("shell.cedar", TWO, "other"), None);
    }
}
