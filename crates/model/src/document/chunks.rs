//! Chunks of a text: at headings where there are some, else at paragraphs, else at sentences or blanks. Where a section is
//! divided, the next chunk begins a little before the end of the previous one, so that no sentence loses its context.

use crate::merkle::sha256;

/// The maximum size of a chunk, in bytes.
pub const CHUNK_BYTES: usize = 3_000;
/// A heading ends a chunk of at least this size, in bytes.
const SMALLEST: usize = 600;
/// The maximum overlap, in bytes: 13 % of a chunk.
const OVERLAP: usize = 390;

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The same for the same text in the same document.
    pub id: String,
    /// The last heading before it, or at its beginning.
    pub heading: Option<String>,
    /// Where it begins in the text of the document, in bytes.
    pub offset: usize,
    pub text: String,
}

/// Divides the text of a document.
pub fn chunks(document: &str, text: &str) -> Vec<Chunk> {
    let headings = headings(text);
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut begin = 0;
    while begin < text.len() {
        let end = end_of_chunk(text, &headings, begin);
        let Some(piece) = text.get(begin..end) else { break };
        let trimmed = piece.trim();
        if !trimmed.is_empty() {
            let offset = begin + (piece.len() - piece.trim_start().len());
            let heading = headings.iter().rev().find(|(at, _)| *at <= offset).map(|(_, heading)| heading.clone());
            let same = chunks.iter().filter(|chunk| chunk.text == trimmed).count();
            chunks.push(Chunk { id: id_of(document, trimmed, same), heading, offset, text: trimmed.to_owned() });
        }
        if end >= text.len() {
            break;
        }
        let is_section_end = headings.iter().any(|(at, _)| *at == end);
        begin = if is_section_end { end } else { begin_of_overlap(text, begin, end) };
    }
    chunks
}

fn id_of(document: &str, text: &str, same: usize) -> String {
    let mut hash = sha256(format!("{document}\n{same}\n{text}").as_bytes()).to_hex();
    hash.truncate(32);
    hash
}

/// Where headings begin, with their texts. Lines in fenced blocks are no headings.
fn headings(text: &str) -> Vec<(usize, String)> {
    let (mut headings, mut at, mut is_fenced) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_fenced = !is_fenced;
        }
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !is_fenced && (1..=6).contains(&level) && title.starts_with(' ') && !title.trim().is_empty() {
            headings.push((at, title.trim().trim_end_matches('#').trim().to_owned()));
        }
        at += line.len();
    }
    headings
}

fn end_of_chunk(text: &str, headings: &[(usize, String)], begin: usize) -> usize {
    let limit = floor(text, begin + CHUNK_BYTES);
    let heading = headings.iter().map(|(at, _)| *at).find(|at| *at >= begin + SMALLEST && *at <= limit);
    if let Some(heading) = heading {
        return heading;
    }
    if limit >= text.len() {
        return text.len();
    }
    let window = text.get(floor(text, begin + SMALLEST)..limit).unwrap_or_default();
    let from = limit - window.len();
    let after = |separator: &str| window.rfind(separator).map(|at| from + at + separator.len());
    // From the half on, a worse place is better than a tiny chunk.
    let is_late = |at: &usize| *at >= begin + CHUNK_BYTES / 2;
    after("\n\n")
        .filter(is_late)
        .or_else(|| [". ", "! ", "? ", ".\n", "。"].into_iter().filter_map(after).max().filter(is_late))
        .or_else(|| window.rfind(char::is_whitespace).map(|at| from + at).filter(is_late))
        .unwrap_or(limit)
}

/// The first word that begins within the overlap.
fn begin_of_overlap(text: &str, begin: usize, end: usize) -> usize {
    let from = floor(text, end.saturating_sub(OVERLAP)).max(begin);
    let window = text.get(from..end).unwrap_or_default();
    let sentence = window.find(". ").map(|at| from + at + 2);
    let blank = window.find(char::is_whitespace).map(|at| from + at);
    let at = sentence.or(blank).filter(|at| *at < end).unwrap_or(from);
    if at > begin { at } else { end }
}

/// The nearest beginning of a character at or before this place.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(count: usize) -> String {
        (0..count).map(|number| format!("Sentence number {number} says something of its own. ")).collect()
    }

    #[test]
    fn a_short_text_is_one_chunk_and_an_empty_one_is_none() {
        let [chunk] = &chunks("doc", "# Title\n\nBody.\n")[..] else { panic!("one chunk") };
        assert_eq!(
            (chunk.heading.as_deref(), chunk.offset, chunk.text.as_str()),
            (Some("Title"), 0, "# Title\n\nBody.")
        );
        assert!(chunks("doc", " \n\n ").is_empty());
    }

    #[test]
    fn sections_are_chunks_of_their_own() {
        let text = format!("# One\n\n{}\n\n## Two\n\n{}", sentences(30), sentences(30));
        let chunks = chunks("doc", &text);
        assert_eq!(chunks.iter().map(|chunk| chunk.heading.as_deref()).collect::<Vec<_>>(), [Some("One"), Some("Two")]);
        assert!(chunks[1].text.starts_with("## Two"), "sections do not overlap");
    }

    #[test]
    fn a_long_section_is_divided_with_an_overlap_and_nothing_is_lost() {
        let text = sentences(300);
        let chunks = chunks("doc", &text);
        assert!(chunks.len() > 4);
        for pair in chunks.windows(2) {
            let end = pair[0].offset + pair[0].text.len();
            assert!(pair[1].offset < end && end - pair[1].offset <= OVERLAP, "{pair:?}");
        }
        assert!(chunks.iter().all(|chunk| chunk.text.len() <= CHUNK_BYTES));
        assert!((0..300).all(|number| {
            let sentence = format!("Sentence number {number} says something of its own.");
            chunks.iter().any(|chunk| chunk.text.contains(&sentence))
        }));
    }

    #[test]
    fn text_without_any_blank_is_divided_between_characters() {
        for text in ["語".repeat(5_000), "x".repeat(10_000)] {
            let chunks = chunks("doc", &text);
            assert!(chunks.len() > 3 && chunks.iter().all(|chunk| chunk.text.len() <= CHUNK_BYTES));
        }
    }

    #[test]
    fn ids_follow_from_the_text_and_differ_where_it_repeats() {
        let text = format!("{}\n\n{}", sentences(300), sentences(300));
        let (once, again) = (chunks("doc", &text), chunks("doc", &text));
        assert_eq!(once, again);
        let mut ids: Vec<_> = once.iter().map(|chunk| &chunk.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), once.len());
        assert_ne!(chunks("other", &text)[0].id, once[0].id);
    }

    #[test]
    fn what_looks_like_a_heading_in_code_is_none() {
        let text = format!("# Real\n\n```sh\n# comment\n```\n\n{}", sentences(10));
        assert_eq!(headings(&text).len(), 1);
    }
}
