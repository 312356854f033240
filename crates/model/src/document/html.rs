//! The text of an HTML page as a reader sees it. This is no browser: style sheets are not applied, only what an element says
//! about itself. Text that is hidden in other ways stays, and is untrusted where its collection is.

use super::RemovedParts;

/// Elements whose content is no text of the page.
const SILENT: [&str; 9] = ["canvas", "head", "iframe", "noscript", "object", "select", "svg", "template", "textarea"];
/// Elements that begin and end a line.
const BLOCKS: [&str; 34] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "html",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "ul",
];
/// Elements without an end.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];
/// Declarations by which an element hides itself, without blanks.
const HIDING: [&str; 11] = [
    "display:none",
    "visibility:hidden",
    "opacity:0;",
    "opacity:0.0",
    "font-size:0;",
    "font-size:0p",
    "color:transparent",
    "left:-9",
    "top:-9",
    "text-indent:-9",
    "max-height:0",
];

/// The title of a page, its text, and what was removed.
pub(super) fn text_of_html(source: &str) -> (Option<String>, String, RemovedParts) {
    let mut reader = Reader::default();
    reader.read(source);
    (Some(reader.title).filter(|title| !title.trim().is_empty()), tidied(&reader.text), reader.removed)
}

#[derive(Default)]
struct Reader {
    title: String,
    text: String,
    removed: RemovedParts,
    /// The element whose content is skipped, and how many of its kind are open in it.
    skipped: Option<(String, u32)>,
    is_title: bool,
}

/// A tag.
struct Tag<'a> {
    name: String,
    is_end: bool,
    attributes: &'a str,
}

impl Reader {
    fn read(&mut self, source: &str) {
        let mut rest = source;
        while let Some((before, after)) = rest.split_once('<') {
            self.add(before);
            rest = if let Some(comment) = after.strip_prefix("!--") {
                self.removed.comments = self.removed.comments.saturating_add(1);
                comment.split_once("-->").map_or("", |(_, rest)| rest)
            } else if after.starts_with(['!', '?']) {
                after.split_once('>').map_or("", |(_, rest)| rest)
            } else if let Some((tag, after)) = tag(after) {
                self.see(&tag, after)
            } else {
                self.add("<");
                after
            };
        }
        self.add(rest);
    }

    /// Takes a tag, and returns what is left to read after it.
    fn see<'a>(&mut self, tag: &Tag<'_>, after: &'a str) -> &'a str {
        let name = tag.name.as_str();
        if !tag.is_end && matches!(name, "script" | "style") {
            let count = if name == "script" { &mut self.removed.scripts } else { &mut self.removed.styles };
            *count = count.saturating_add(1);
            return after_end(after, name);
        }
        if name == "title" && self.skipped.as_ref().is_none_or(|(skipped, _)| skipped == "head") {
            self.is_title = !tag.is_end;
            return after;
        }
        if let Some((skipped, open)) = &mut self.skipped {
            // What cannot be inside ends an element whose end is missing.
            let ends = (skipped == "head" && name == "body") || (skipped == "p" && BLOCKS.contains(&name));
            if *skipped == tag.name {
                *open = if tag.is_end { open.saturating_sub(1) } else { open.saturating_add(1) };
            }
            let is_cut = ends && !tag.is_end;
            if *open > 0 && !is_cut {
                return after;
            }
            self.skipped = None;
            if !is_cut {
                return after;
            }
        }
        let is_hidden = hides(tag.attributes);
        if !tag.is_end && !VOID.contains(&name) && (is_hidden || SILENT.contains(&name)) {
            if is_hidden {
                self.removed.hidden_elements = self.removed.hidden_elements.saturating_add(1);
            }
            self.skipped = Some((tag.name.clone(), 1));
            return after;
        }
        self.mark(tag);
        after
    }

    fn mark(&mut self, tag: &Tag<'_>) {
        let level =
            tag.name.strip_prefix('h').and_then(|level| level.parse::<usize>().ok()).filter(|level| *level <= 6);
        match tag.name.as_str() {
            _ if level.is_some_and(|level| level > 0) && !tag.is_end => {
                self.text.push_str("\n\n");
                self.text.push_str(&"#".repeat(level.unwrap_or(1)));
                self.text.push(' ');
            }
            "li" if !tag.is_end => self.text.push_str("\n- "),
            "br" | "tr" => self.text.push('\n'),
            "td" | "th" => self.text.push(' '),
            block if BLOCKS.contains(&block) => self.text.push_str("\n\n"),
            _ => {}
        }
    }

    fn add(&mut self, text: &str) {
        if self.is_title {
            self.title.push_str(&unescaped(text));
        } else if self.skipped.is_none() {
            // Line ends of the source mean no more than blanks.
            self.text.push_str(&unescaped(text).replace(['\n', '\r', '\t'], " "));
        }
    }
}

/// The tag at the beginning of a text that follows `<`, and the text after it.
fn tag(text: &str) -> Option<(Tag<'_>, &str)> {
    let (is_end, body) = text.strip_prefix('/').map_or((false, text), |body| (true, body));
    if !body.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let end = end_of_tag(body);
    let (inside, rest) = (body.get(..end)?, body.get(end..)?);
    let is_name = |letter: char| !(letter.is_whitespace() || letter == '/');
    let length = inside.find(|letter| !is_name(letter)).unwrap_or(inside.len());
    let (name, attributes) = (inside.get(..length)?, inside.get(length..)?);
    Some((Tag { name: name.to_ascii_lowercase(), is_end, attributes }, rest.strip_prefix('>').unwrap_or(rest)))
}

/// Where the tag ends: a `>` in a quoted value does not end it.
fn end_of_tag(body: &str) -> usize {
    let mut quote = None;
    for (at, letter) in body.char_indices() {
        match (quote, letter) {
            (None, '>') => return at,
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            _ => {}
        }
    }
    // A quote that is not closed: the first `>` counts.
    body.find('>').unwrap_or(body.len())
}

/// The text after the end tag of this name.
fn after_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("</") {
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after.split_once('>').map_or("", |(_, rest)| rest);
        }
        rest = after;
    }
    ""
}

/// Whether an element with these attributes is not shown.
fn hides(attributes: &str) -> bool {
    if attributes.trim().is_empty() {
        return false;
    }
    let plain = attributes.to_ascii_lowercase();
    let mut words = plain.split(|letter: char| letter.is_whitespace() || letter == '/');
    let is_hidden = words.any(|word| word == "hidden" || word.starts_with("hidden="));
    if is_hidden || plain.contains("aria-hidden=\"true\"") || plain.contains("aria-hidden='true'") {
        return true;
    }
    let Some((_, style)) = plain.split_once("style") else { return false };
    let style: String = style.chars().filter(|letter| !letter.is_whitespace()).chain([';']).collect();
    let style = style.replace(['"', '\''], ";");
    HIDING.iter().any(|hiding| style.contains(hiding))
}

/// The text with its character references replaced.
fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        unescaped.push_str(before);
        let reference = after.split_once(';').filter(|(name, _)| name.len() <= 10);
        match reference.and_then(|(name, rest)| Some((character(name)?, rest))) {
            Some((letter, after)) => {
                unescaped.push(letter);
                rest = after;
            }
            None => {
                unescaped.push('&');
                rest = after;
            }
        }
    }
    unescaped.push_str(rest);
    unescaped
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(number).filter(|letter| *letter != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "shy" => '\u{ad}',
        "zwnj" => '\u{200c}',
        "zwj" => '\u{200d}',
        "lrm" => '\u{200e}',
        "rlm" => '\u{200f}',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "hellip" => '…',
        "bull" => '•',
        "euro" => '€',
        "copy" => '©',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        _ => return None,
    })
}

/// Single blanks, and at most one empty line.
fn tidied(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split([' ', '\u{a0}']).filter(|word| !word.is_empty()).collect();
        // A mark of a list or heading without text is nothing.
        if words.is_empty()
            || matches!(words.as_slice(), [mark] if mark.chars().all(|letter| matches!(letter, '#' | '-')))
        {
            empty += 1;
            continue;
        }
        if empty > 0 && !tidied.is_empty() {
            tidied.push('\n');
        }
        empty = 0;
        tidied.push_str(&words.join(" "));
        tidied.push('\n');
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        text_of_html(source).1
    }

    #[test]
    fn a_page_is_its_headings_paragraphs_and_lists() {
        let (title, text, removed) = text_of_html(
            "<!doctype html><html><head><title>Refund &amp; returns</title><style>p{}</style><meta charset=utf-8></head>\
             <body><h1>Refunds</h1><p>Within\n <b>30</b>&nbsp;days.<br>Ask us.<ul><li>One<li>Two</ul>\
             <table><tr><td>A<td>B</table><script>var a = '<p>no</p>';</script></body></html>",
        );
        assert_eq!(title.as_deref(), Some("Refund & returns"));
        assert_eq!(text, "# Refunds\n\nWithin 30 days.\nAsk us.\n\n- One\n- Two\n\nA B\n");
        assert_eq!((removed.scripts, removed.styles, removed.hidden_elements), (1, 1, 0));
    }

    #[test]
    fn what_a_reader_does_not_see_is_removed_and_counted() {
        for hidden in [
            "<div style=\"display: none\">planted</div>",
            "<div style='visibility:hidden;x:y'><div>planted</div>planted</div>",
            "<p hidden>planted</p>",
            "<span aria-hidden=\"true\">planted</span>",
            "<span style=\"font-size:0px\">planted</span>",
            "<span style=\"position:absolute; left:-9999px\">planted</span>",
            "<DIV STYLE=\"Opacity:0\">planted</DIV>",
            "<p hidden>planted<p>",
        ] {
            let (_, text, removed) = text_of_html(&format!("<p>before</p>{hidden}<p>after</p>"));
            assert_eq!(text, "before\n\nafter\n", "{hidden}");
            assert_eq!(removed.hidden_elements, 1, "{hidden}");
        }
        let (_, text, removed) = text_of_html("a<!-- planted --><!--planted>-->b<template>planted</template>");
        assert_eq!((text.as_str(), removed.comments), ("ab\n", 2));
    }

    #[test]
    fn broken_pages_lose_no_text_and_invent_none() {
        assert_eq!(text("1 < 2 & 3 > 2 &unknown; &#65;&#x42;"), "1 < 2 & 3 > 2 &unknown; AB\n");
        assert_eq!(text("<p title='a > b'>shown"), "shown\n");
        assert_eq!(text("<p title='open>shown"), "shown\n");
        assert_eq!(text("<script>never ends"), "");
        assert_eq!(text("<!-- never ends"), "");
        assert_eq!(text(""), "");
        assert_eq!(text("<b>opacity:0</b>"), "opacity:0\n");
    }
}
