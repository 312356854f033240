//! Recognizes strings with the format of a secret: tokens with an issuer's prefix, signed tokens, private keys,
//! authorization headers, passwords in URLs.
//!
//! A prefix alone is not enough, or `sk-learn` would be a key. One pass over the text, with a cost that does not depend
//! on its content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::key;

/// The minimum length of a secret with a prefix.
const MIN_TOKEN: usize = 12;
/// How far to look after a prefix, so that a text of nothing but prefixes costs no more than another.
const FAR_ENOUGH: usize = 64;
/// The beginning of a JSON object in base64, of both the header and the claims of a signed token.
const JSON_OBJECT: &[u8] = b"eyJ";

/// A prefix, and the kind and minimum number of the characters that follow.
struct Shape(&'static str, Kind, usize);

#[derive(PartialEq, Eq)]
enum Kind {
    /// Exactly this number of capital letters and digits.
    Capitals,
    Hex,
    /// Letters, digits and `_`.
    Word,
    /// Those and `-`.
    Url,
    /// Those and `.`.
    Dotted,
}

const SHAPES: [Shape; 57] = [
    Shape("AGE-SECRET-KEY-1", Kind::Word, 50),
    Shape("AIza", Kind::Url, 35),
    Shape("AKIA", Kind::Capitals, 16),
    Shape("ASIA", Kind::Capitals, 16),
    Shape("AccountKey=", Kind::Word, 16),
    Shape("GOCSPX-", Kind::Url, 20),
    Shape("PMAK-", Kind::Url, 40),
    Shape("SG.", Kind::Dotted, 40),
    Shape("dapi", Kind::Hex, 32),
    Shape("dckr_pat_", Kind::Url, 20),
    Shape("doo_v1_", Kind::Hex, 32),
    Shape("dop_v1_", Kind::Hex, 32),
    Shape("dor_v1_", Kind::Hex, 32),
    Shape("dp.pt.", Kind::Word, 32),
    Shape("figd_", Kind::Url, 30),
    Shape("gho_", Kind::Word, 30),
    Shape("ghp_", Kind::Word, 30),
    Shape("ghr_", Kind::Word, 30),
    Shape("ghs_", Kind::Word, 30),
    Shape("ghu_", Kind::Word, 30),
    Shape("github_pat_", Kind::Word, 22),
    Shape("glpat-", Kind::Url, 16),
    Shape("glptt-", Kind::Url, 16),
    Shape("glsa_", Kind::Word, 30),
    Shape("gsk_", Kind::Word, 30),
    Shape("hf_", Kind::Word, 30),
    Shape("hvs.", Kind::Url, 24),
    Shape("lin_api_", Kind::Word, 30),
    Shape("npm_", Kind::Word, 30),
    Shape("ntn_", Kind::Word, 30),
    Shape("nvapi-", Kind::Url, 40),
    Shape("pplx-", Kind::Word, 32),
    Shape("pypi-", Kind::Url, 32),
    Shape("r8_", Kind::Word, 30),
    Shape("rk_live_", Kind::Word, 8),
    Shape("rk_test_", Kind::Word, 8),
    Shape("sbp_", Kind::Hex, 32),
    Shape("shpat_", Kind::Word, 24),
    Shape("shpca_", Kind::Word, 24),
    Shape("shppa_", Kind::Word, 24),
    Shape("shpss_", Kind::Word, 24),
    Shape("sk-", Kind::Url, 16),
    Shape("sk_live_", Kind::Word, 8),
    Shape("sk_test_", Kind::Word, 8),
    Shape("sntrys_", Kind::Word, 32),
    Shape(key::PREFIX, Kind::Word, 40),
    Shape("whsec_", Kind::Word, 16),
    Shape("xai-", Kind::Word, 32),
    Shape("xapp-", Kind::Url, 16),
    Shape("xoxa-", Kind::Url, 12),
    Shape("xoxb-", Kind::Url, 12),
    Shape("xoxe-", Kind::Url, 12),
    Shape("xoxe.", Kind::Url, 16),
    Shape("xoxp-", Kind::Url, 12),
    Shape("xoxr-", Kind::Url, 12),
    Shape("xoxs-", Kind::Url, 12),
    Shape("ya29.", Kind::Url, 16),
];

/// Whether the text contains something with the format of a secret.
pub(crate) fn occurs(text: &str) -> bool {
    has_password(text) || (text.len() >= MIN_TOKEN && (has_private_key(text) || has_token(text.as_bytes())))
}

/// A URL with a user name and a password: `postgres://name:password@host`.
fn has_password(text: &str) -> bool {
    let ends = |letter: char| matches!(letter, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || letter.is_whitespace();
    text.split("://").skip(1).any(|after| {
        let authority = after.split(ends).next().unwrap_or_default();
        let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        password.is_some_and(|(_, password)| !password.is_empty())
    })
}

fn has_private_key(text: &str) -> bool {
    text.split("-----BEGIN ").skip(1).any(|after| {
        let label = after.split_once("-----").map_or("", |(label, _)| label);
        label.len() <= 40 && label.contains("PRIVATE KEY")
    })
}

fn has_token(text: &[u8]) -> bool {
    let mut scheme = None;
    for run in text.split(|&byte| !is_credential(byte)).filter(|run| !run.is_empty()) {
        let is_long = run.len() >= MIN_TOKEN;
        if scheme.is_some_and(|scheme: Scheme| scheme.fits(run))
            || is_long && (has_signed_token(run) || has_prefixed_token(run))
        {
            return true;
        }
        scheme = Scheme::of(run);
    }
    false
}

/// The characters of credentials in an authorization header.
fn is_credential(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

/// The authentication scheme in an authorization header.
#[derive(Clone, Copy)]
enum Scheme {
    Basic,
    Bearer,
}

impl Scheme {
    fn of(word: &[u8]) -> Option<Self> {
        match word {
            word if word.eq_ignore_ascii_case(b"basic") => Some(Self::Basic),
            word if word.eq_ignore_ascii_case(b"bearer") => Some(Self::Bearer),
            _ => None,
        }
    }

    /// Whether a credential follows, and not the next word of a sentence.
    fn fits(self, credential: &[u8]) -> bool {
        match self {
            Self::Basic => {
                let bare = credential.split(|&byte| byte == b'=').next().unwrap_or_default();
                let decoded = STANDARD_NO_PAD.decode(bare).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                decoded.is_some_and(|pair| pair.contains(':') && !pair.contains(char::is_control))
            }
            Self::Bearer => {
                let length = credential.len();
                length >= 24 || (length >= 8 && credential.iter().any(u8::is_ascii_digit))
            }
        }
    }
}

/// Header and claims of a signed token, one after the other.
fn has_signed_token(run: &[u8]) -> bool {
    let is_part = |part: &[u8]| part.len() >= 10 && part.starts_with(JSON_OBJECT);
    let mut after_header = false;
    run.split(|&byte| byte == b'.').any(|part| {
        let found = after_header && is_part(part);
        let last_word = part.rsplit(|&byte| !Kind::Url.holds(byte)).next();
        after_header = last_word.is_some_and(is_part);
        found
    })
}

/// A token with a known prefix, at the beginning of the run or of a word in it.
fn has_prefixed_token(run: &[u8]) -> bool {
    let mut rest = run;
    while rest.len() >= MIN_TOKEN {
        if SHAPES.iter().any(|shape| shape.fits(rest)) {
            return true;
        }
        let Some(gap) = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()) else { return false };
        rest = rest.get(gap + 1..).unwrap_or_default();
    }
    false
}

impl Shape {
    fn fits(&self, text: &[u8]) -> bool {
        let Self(prefix, kind, least) = self;
        let Some(after) = text.strip_prefix(prefix.as_bytes()) else { return false };
        let token = || after.iter().take(FAR_ENOUGH).take_while(|&&byte| kind.holds(byte));
        let length = token().count();
        if *kind == Kind::Capitals {
            return length == *least;
        }
        // Words joined by hyphens are a name; a random value has a digit, or letters of both cases.
        let has = |is: fn(&u8) -> bool| token().any(is);
        let is_random = || has(u8::is_ascii_digit) || (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase));
        length >= *least && is_random()
    }
}

impl Kind {
    fn holds(&self, byte: u8) -> bool {
        match self {
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Url => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
            Self::Dotted => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte == b'.',
        }
    }
}
