//! The commented example of the configuration file. `toolgate.example.toml` in the repository is this text.

use super::keys::KEYS;

/// How wide the comments are.
const WIDTH: usize = 100;

/// Every key with its meaning and, commented out, its default or an example.
pub fn example() -> String {
    let mut text = String::new();
    comment(
        &mut text,
        "The configuration of Toolgate, with every key. Uncomment a line to set it. A flag of `toolgate serve` takes \
        precedence over a variable, a variable over this file, this file over the default. Relative paths are \
        relative to the working directory of the gate. A duration may also be written with its unit, under a key \
        without the unit: idle_timeout = \"2m\" for idle_timeout_seconds = 120. `toolgate config check` shows the \
        effective values and where they come from.",
    );
    let mut section = "";
    for key in KEYS {
        text.push('\n');
        if key.section() != section {
            section = key.section();
            text.push_str(&format!("[{section}]\n"));
        }
        let flag = key.flag.map(|flag| format!("{flag}, ")).unwrap_or_default();
        comment(&mut text, &format!("{} ({flag}{})", key.meaning, key.variable));
        text.push_str(&format!("#{} = {}\n", key.name(), key.example));
    }
    text
}

fn comment(text: &mut String, sentence: &str) {
    let mut line = String::from("#");
    for word in sentence.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    const IN_THE_REPOSITORY: &str = include_str!("../../../../toolgate.example.toml");

    /// To bring the file up to date: `cargo run -- config example > toolgate.example.toml`.
    #[test]
    fn the_example_in_the_repository_is_what_the_program_prints() {
        assert_eq!(IN_THE_REPOSITORY, example());
    }

    #[test]
    fn every_key_of_the_example_is_valid_when_its_mark_is_removed() {
        let uncommented: Vec<String> = example()
            .lines()
            .map(|line| if line.starts_with("# ") { String::new() } else { line.trim_start_matches('#').to_owned() })
            .collect();
        let given = file::read(&uncommented.join("\n")).ok().unwrap();
        assert_eq!(given.len(), KEYS.len());
    }

    #[test]
    fn the_example_as_it_is_says_nothing() {
        assert!(file::read(&example()).ok().unwrap().is_empty());
    }
}
