//! Email addresses: around an `@` a local part without quotes and a domain of at least two labels, in any script.

use std::ops::Range;

/// Finds the ranges of addresses.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    text.match_indices('@').filter_map(|(at, _)| Some(start_of_name(text, at)?..end_of_domain(text, at + 1)?)).collect()
}

fn start_of_name(text: &str, at: usize) -> Option<usize> {
    let name = text.get(..at)?.char_indices().rev().take_while(|(_, character)| is_name(*character));
    // Markup for emphasis may directly precede a name.
    let first = name.filter(|(_, character)| is_letter(*character) || *character == '_').last();
    first.map(|(position, _)| position)
}

/// The end of the last label that can be a top-level domain.
fn end_of_domain(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let length = rest.find(|character| !(is_letter(character) || matches!(character, '-' | '.'))).unwrap_or(rest.len());
    let domain = rest.get(..length)?;
    let mut end = None;
    let mut position = start;
    for (number, label) in domain.split('.').enumerate() {
        if label.is_empty() || label.starts_with('-') {
            break;
        }
        if number > 0
            && let Some(length) = top_level(label)
        {
            end = Some(position + length);
        }
        position += label.len() + 1;
    }
    end
}

/// The length of the top-level domain at the beginning: letters of one script, at least two.
fn top_level(label: &str) -> Option<usize> {
    if label.starts_with("xn--") {
        return Some(label.trim_end_matches('-').len());
    }
    // Text in another script is the continuation of the sentence.
    let is_ascii = label.starts_with(|first: char| first.is_ascii());
    let ends = |character: char| character.is_ascii() != is_ascii || character == '-';
    let top = label.split(ends).next()?;
    let is_top = top.chars().nth(1).is_some() && !top.contains(|character: char| character.is_ascii_digit());
    is_top.then_some(top.len())
}

fn is_name(character: char) -> bool {
    is_letter(character)
        || matches!(character, '.' | '_' | '%' | '+' | '-' | '\'' | '&' | '!' | '#' | '$' | '*' | '^' | '~')
}

/// A letter or digit of any script; combining marks count as well.
fn is_letter(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    let is_punctuation = matches!(character, '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}');
    let is_wide_sign = matches!(character, '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff40}');
    !is_punctuation && !is_wide_sign && !character.is_whitespace() && !character.is_control()
}
