//! The token that resumes a suspended call: a secret between this process and its host. The id of the call is not a secret,
//! because the model that made the call knows it.

use std::fmt;

use subtle::ConstantTimeEq;

/// Replaces a token in tool output.
const REMOVED: &str = "[resume token removed]";

#[derive(Clone)]
pub struct ResumeToken(String);

impl ResumeToken {
    pub fn from_entropy(entropy: [u8; 20]) -> Self {
        let digits: String = entropy.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("rt-{digits}"))
    }

    pub fn parse(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }

    pub fn strip(&self, text: String) -> String {
        if text.contains(&self.0) { text.replace(&self.0, REMOVED) } else { text }
    }
}

impl fmt::Debug for ResumeToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ResumeToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_nothing_shorter_longer_or_empty() {
        let token = ResumeToken::from_entropy([7; 20]);
        let said = |text: &str| ResumeToken::parse(text.to_owned()).unwrap();
        assert!(token.is(&said(token.expose())));
        for other in ["rt-", "rt-07", &format!("{}0", token.expose()), "c-9f3a"] {
            assert!(!token.is(&said(other)), "{other}");
        }
        assert!(ResumeToken::parse(String::new()).is_none());
    }

    #[test]
    fn a_token_has_more_than_128_bits_and_is_not_shown_by_accident() {
        let token = ResumeToken::from_entropy([0xa5; 20]);
        assert_eq!(token.expose().len(), 3 + 40);
        assert!(!format!("{token:?}").contains("a5"));
        let output = format!("read {} and {}", token.expose(), token.expose());
        assert_eq!(token.strip(output), "read [resume token removed] and [resume token removed]");
    }
}
