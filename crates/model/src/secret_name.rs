//! Names that indicate a secret, checked word by word, so that `api_key` and `apiKey` match and `monkey`, `author`,
//! `keywords` and `token_count` do not. Every name of every call is checked, so nothing is allocated here.

use std::cmp::Ordering;

/// A name with one of these words is that of a secret.
const ANYWHERE: [&str; 28] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "cardnumber",
    "clientsecret",
    "cookie",
    "credential",
    "cvc",
    "cvv",
    "jwt",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "refreshtoken",
    "secret",
    "secretkey",
    "sessionid",
    "sessiontoken",
    "setcookie",
    "ssn",
    "totp",
];
/// A name that ends in one of these is; `token_count` is about tokens, and is not.
const AT_THE_END: [&str; 6] = ["auth", "bearer", "pass", "pin", "session", "token"];
/// Words that may follow those without changing the meaning.
const CARRIERS: [&str; 9] = ["base64", "data", "hash", "header", "id", "key", "string", "text", "value"];
/// Two words that together name a secret.
const PAIRS: [(&str, &str); 20] = [
    ("access", "key"),
    ("access", "token"),
    ("account", "key"),
    ("api", "key"),
    ("api", "token"),
    ("auth", "key"),
    ("auth", "token"),
    ("backup", "code"),
    ("bearer", "token"),
    ("card", "number"),
    ("credit", "card"),
    ("encryption", "key"),
    ("master", "key"),
    ("private", "key"),
    ("recovery", "code"),
    ("refresh", "token"),
    ("security", "code"),
    ("shared", "key"),
    ("signing", "key"),
    ("social", "security"),
];

/// Words, with a bit set of their lengths for each ASCII first letter. Nearly every word of a name is none of them, and
/// is excluded by this alone.
struct Words<const COUNT: usize> {
    words: [&'static str; COUNT],
    lengths: [u32; 128],
}

static NAMING: Words<28> = Words::new(ANYWHERE);
static ENDING: Words<6> = Words::new(AT_THE_END);
static CARRYING: Words<9> = Words::new(CARRIERS);
static SECOND: Words<20> = Words::new(seconds());

impl<const COUNT: usize> Words<COUNT> {
    #[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
    const fn new(words: [&'static str; COUNT]) -> Self {
        let mut lengths = [0; 128];
        let mut word = 0;
        while word < COUNT {
            let known = words[word].as_bytes();
            lengths[known[0] as usize] |= 1 << known.len();
            word += 1;
        }
        Self { words, lengths }
    }

    fn has(&self, word: &str) -> bool {
        self.may_have(word) && self.words.iter().any(|known| same(word, known))
    }

    fn may_have(&self, word: &str) -> bool {
        match word.as_bytes().first() {
            Some(first) if word.is_ascii() => {
                let lengths = self.lengths.get(usize::from(first.to_ascii_lowercase())).copied().unwrap_or_default();
                let length = u32::try_from(word.len()).unwrap_or(u32::MAX);
                1_u32.checked_shl(length).is_some_and(|bit| lengths & bit != 0)
            }
            // Some non-ASCII letters are ASCII in lower case.
            _ => true,
        }
    }
}

#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
const fn seconds() -> [&'static str; PAIRS.len()] {
    let mut seconds = [""; PAIRS.len()];
    let mut pair = 0;
    while pair < PAIRS.len() {
        seconds[pair] = PAIRS[pair].1;
        pair += 1;
    }
    seconds
}

/// Whether this name indicates a secret. The last word of the surrounding name, or of the path to it, counts too: the
/// `number` of a `card` is one.
pub(crate) fn is_secret(parent: &str, name: &str) -> bool {
    let mut previous = words(parent).last();
    let mut significant = None;
    for word in words(name) {
        if NAMING.has(singular(word)) {
            return true;
        }
        let is_pair = |&(first, second): &(&str, &str)| {
            same(singular(word), second) && previous.is_some_and(|previous| same(previous, first))
        };
        if SECOND.may_have(singular(word)) && PAIRS.iter().any(is_pair) {
            return true;
        }
        if !CARRYING.has(word) {
            significant = Some(word);
        }
        previous = Some(word);
    }
    significant.is_some_and(|word| ENDING.has(word))
}

/// The name in snake_case: `apiKey` and `API-Key` are `api_key`.
pub(crate) fn snake_case(name: &str) -> String {
    words(name).map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// The words of a name in snake_case, kebab-case or camelCase, without trailing digits.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    let words = std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let (word, after) = rest.split_at_checked(end_of_word(rest))?;
        rest = after;
        (!word.is_empty()).then_some(word)
    });
    // `base64` is a word with its number; a number alone is ignored.
    words.map(|word: &str| if same(word, "base64") { word } else { bare(word) }).filter(|word| !word.is_empty())
}

/// The end of the first word: before anything but letters and digits, and before a capital that begins the next word.
fn end_of_word(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    let mut previous: Option<char> = None;
    while let Some((position, letter)) = letters.next() {
        let next_is_lower = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let begins = letter.is_uppercase() && previous.is_some_and(|before| !before.is_uppercase() || next_is_lower);
        if begins || !letter.is_alphanumeric() {
            return position;
        }
        previous = Some(letter);
    }
    text.len()
}

fn bare(word: &str) -> &str {
    word.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

fn singular(word: &str) -> &str {
    word.strip_suffix(['s', 'S']).unwrap_or(word)
}

/// Whether this is the known word, which is in lower case.
fn same(word: &str, known: &str) -> bool {
    match word.len().cmp(&known.len()) {
        Ordering::Less => false,
        Ordering::Equal => word.eq_ignore_ascii_case(known),
        // Some non-ASCII letters are ASCII in lower case, such as the Kelvin sign. They are all longer than one byte. A
        // word with another ASCII first letter is quickly excluded.
        Ordering::Greater => {
            let first = word.as_bytes().first().copied().unwrap_or_default();
            let may_be = !first.is_ascii() || known.as_bytes().first() == Some(&first.to_ascii_lowercase());
            may_be && !word.is_ascii() && word.chars().flat_map(char::to_lowercase).eq(known.chars())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_words() {
        let secret = [
            "password",
            "PASSWORD",
            "userPassword",
            "user_passwd",
            "passwords",
            "client_secret",
            "clientSecret",
            "secret",
            "token",
            "access_token",
            "accessToken",
            "refresh-token",
            "token_id",
            "api_key",
            "apikey",
            "apiKey",
            "APIKey",
            "X-Api-Key",
            "api_keys",
            "x_api_key_2",
            "authorization",
            "Authorization",
            "credentials",
            "private_key",
            "privateKey",
            "access_key",
            "AWSAccessKey",
            "cookie",
            "Set-Cookie",
            "session",
            "session_id",
            "sessionId",
            "ssn",
            "card_number",
            "cardNumber",
            "card.number",
            "cvv",
            "cvc",
            "cvv2",
            "otp",
            "jwt",
            "pin",
            "auth",
            "smtp_pass",
            "password2",
            "signing_key",
            "api.key",
            "a.b.private.key",
            "social_security_number",
            "security_code",
            "bearerToken",
        ];
        for name in secret {
            assert!(is_secret("", name), "{name}");
        }
        let plain = [
            "token_count",
            "max_tokens",
            "tokens",
            "author",
            "authority",
            "authors",
            "monkey",
            "keywords",
            "key",
            "keyboard",
            "keys",
            "public_key_count",
            "secretary",
            "session_count",
            "passenger",
            "compass",
            "passed",
            "pinned",
            "pin_color",
            "spinner",
            "tokenize",
            "number",
            "phone.number",
            "card_brand",
            "cookery",
            "api",
            "api_version",
            "access",
            "access_level",
            "auth_type",
            "token_type",
            "description",
            "amount",
            "id",
            "",
            "bypass",
            "classname",
            "issn",
            "assn",
            "accessibility",
            "cardinality",
            "keyset",
            "primary_key",
        ];
        for name in plain {
            assert!(!is_secret("", name), "{name}");
        }
    }

    #[test]
    fn the_name_around_it_counts() {
        for (parent, name) in [("card", "number"), ("payment.card", "number"), ("apiPrivate", "keys"), ("api", "KEY2")]
        {
            assert!(is_secret(parent, name), "{parent} {name}");
        }
        for (parent, name) in [("phone", "number"), ("card.holder", "number"), ("token", "count"), ("", "number")] {
            assert!(!is_secret(parent, name), "{parent} {name}");
        }
    }

    #[test]
    fn letters_that_only_look_different_change_nothing() {
        assert!(is_secret("", "api\u{212a}ey"));
        assert!(!is_secret("", "clé"));
    }
}
