//! Names that look like a secret's: judged word by word, so that `api_key` and `apiKey` are found and `monkey`,
//! `author`, `keywords` and `token_count` are not.

/// A name with one of these words in it is a secret's.
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
/// A name that ends in one of these is; `token_count` is about tokens, and is none.
const AT_THE_END: [&str; 6] = ["auth", "bearer", "pass", "pin", "session", "token"];
/// Words that may follow those and change nothing.
const CARRIERS: [&str; 9] = ["base64", "data", "hash", "header", "id", "key", "string", "text", "value"];
/// Two words that make a secret together.
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

/// Whether the last name of this path looks like that of a secret. Of the names before it the nearest counts too:
/// `card.number` is the number of a card.
pub(super) fn is_secret(path: &str) -> bool {
    let (before, name) = path.rsplit_once('.').unwrap_or(("", path));
    let own = words(name);
    if own.iter().any(|word| ANYWHERE.contains(&singular(word))) {
        return true;
    }
    let significant = own.iter().rev().find(|word| !CARRIERS.contains(&word.as_str()));
    if significant.is_some_and(|word| AT_THE_END.contains(&word.as_str())) {
        return true;
    }
    let mut sequence: Vec<String> = words(before).pop().into_iter().collect();
    sequence.extend(own);
    sequence.iter().zip(sequence.iter().skip(1)).any(|(first, second)| PAIRS.contains(&(first, singular(second))))
}

/// The words of a name in snake_case, kebab-case or camelCase, in lower case and without trailing digits.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = name.chars().peekable();
    let mut previous = None;
    while let Some(letter) = letters.next() {
        let next_is_lower = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase()
            && previous.is_some_and(|before: char| !before.is_uppercase() || (before.is_uppercase() && next_is_lower));
        if begins || !letter.is_alphanumeric() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        previous = Some(letter);
    }
    words.push(word);
    let bare = |word: String| word.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned();
    // `base64` is a word with its number; what is a number only says nothing.
    let words = words.into_iter().map(|word| if word == "base64" { word } else { bare(word) });
    words.filter(|word| !word.is_empty()).collect()
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}
