//! A permissive scan of a command line: every command that it may contain, including those in quotes, substitutions and
//! arguments of programs that start others. Used for warnings and for what must always be asked; never for an approval.

use crate::shell::{Prefix, PrefixError, read};

/// The maximum nesting of command lines that is followed.
const DEPTH: usize = 4;

/// How many words after a program that starts others are each considered as the started program, and how many words
/// after that as its arguments.
const STARTED: usize = 16;
const ARGUMENTS: usize = 64;

/// The commands that a line may contain, each with its program first, without quotes and escapes.
pub(crate) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    gather(line, DEPTH, &mut found);
    found
}

/// The name of a program without its directory, in lower case.
pub(crate) fn program_name(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// What a word may name: itself, the parts of `--name=value` and `a:b`, and the value appended to a short option.
pub(crate) fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = vec![word];
    if word.contains(['=', ',', ':', '@']) {
        pieces.extend(word.split(['=', ',', ':', '@']).filter(|piece| !piece.is_empty()));
    }
    let mut letters = word.chars();
    if letters.next() == Some('-') && letters.next().is_some_and(|letter| letter != '-') && !letters.as_str().is_empty()
    {
        pieces.push(letters.as_str());
    }
    pieces
}

fn gather(line: &str, depth: usize, found: &mut Vec<Vec<String>>) {
    let commands: Vec<Vec<String>> = match read(line) {
        Ok(commands) => {
            commands.into_iter().map(|command| command.words.into_iter().map(|word| word.text).collect()).collect()
        }
        Err(_) => split(line),
    };
    for words in commands {
        let words: Vec<String> = words.into_iter().skip_while(|word| is_before_program(word)).collect();
        let Some(program) = words.first() else { continue };
        if starts_others(program) && depth > 0 {
            let may_start = |(_, word): &(usize, &String)| !word.starts_with('-') && !is_before_program(word);
            for (place, _) in words.iter().enumerate().skip(1).filter(may_start).take(STARTED) {
                found.push(words.iter().skip(place).take(ARGUMENTS).cloned().collect());
            }
            for word in words.iter().skip(1).filter(|word| word.contains([' ', '\t', '\n', ';', '&', '|'])) {
                gather(word, depth - 1, found);
            }
        }
        found.push(words);
    }
}

/// Splits a line that is more than plain commands, ignoring quotes.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {}
            '\\' => word.extend(letters.next().filter(|&escaped| escaped != '\n')),
            ';' | '&' | '|' | '\n' | '(' | ')' | '`' => {
                end_word(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            '<' | '>' | '{' | '}' => end_word(&mut commands, &mut word),
            blank if blank.is_whitespace() => end_word(&mut commands, &mut word),
            letter => word.push(letter),
        }
    }
    end_word(&mut commands, &mut word);
    commands
}

fn end_word(commands: &mut [Vec<String>], word: &mut String) {
    let word = std::mem::take(word);
    if let Some(command) = commands.last_mut()
        && !word.is_empty()
        && word != "$"
    {
        command.push(word);
    }
}

/// Assignments, and shell keywords that precede a command.
fn is_before_program(word: &str) -> bool {
    matches!(word, "!" | "do" | "elif" | "else" | "if" | "then" | "time" | "until" | "while") || word.contains('=')
}

fn starts_others(program: &str) -> bool {
    matches!(Prefix::parse(program), Err(PrefixError::Unsafe { .. })) || program_name(program) == "find"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(line: &str, words: &[&str]) -> bool {
        commands(line).iter().any(|command| command == words)
    }

    #[test]
    fn commands_are_found_within_others() {
        for line in [
            "rm -r x",
            "ls && rm -r x",
            "sudo -u root rm -r x",
            "echo $(rm -r x)",
            "echo `rm -r x`",
            "bash -c 'cd y; rm -r x'",
            "sudo bash -c \"bash -c 'rm -r x'\"",
            "A=b rm -r x",
            "if true; then rm -r x; fi",
            "r\\m -r \"$HOME\" ; 'rm' -r x",
            "cat <(rm -r x)",
        ] {
            assert!(contains(line, &["rm", "-r", "x"]), "{line}: {:?}", commands(line));
        }
    }

    #[test]
    fn an_argument_is_no_program() {
        assert!(!commands("grep -r rm src").iter().any(|command| command[0] == "rm"));
    }

    #[test]
    fn a_word_names_what_is_written_onto_an_option() {
        assert!(pieces("--out=/etc/x").contains(&"/etc/x"));
        assert!(pieces("-o/etc/x").contains(&"/etc/x"));
        assert!(pieces("host:/etc/x").contains(&"/etc/x"));
        assert_eq!(pieces("plain"), ["plain"]);
    }

    #[test]
    fn many_words_and_deep_nesting_take_bounded_work() {
        let line = format!("sudo {}", "sudo ".repeat(3_000));
        assert!(commands(&line).len() <= STARTED + 1);
        assert!(commands(&"((((`".repeat(4_000)).is_empty());
    }
}
