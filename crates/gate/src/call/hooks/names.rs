//! The normal form of tool names. A runtime may treat ` pay.pay`, `PAY.pay` or a name in full-width letters as
//! `pay.pay`, so the gate decides on this form whether it governs a name; names of services and tools are plain ASCII.

use toolgate_model::credential::ServiceName;
use unicode_normalization::UnicodeNormalization;

/// Prefixes of a service in the id of a tool.
const SOURCES: [&str; 3] = ["connector:", "mcp:", "x-host-"];
/// The prefix of the protocol's own tools.
const CORE: &str = "openwop:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NormalName {
    whole: String,
    /// As `service.tool`, if it was written as an id.
    qualified: String,
}

impl NormalName {
    pub(super) fn of(named: &str) -> Self {
        let seen = named.nfkc().filter(|letter| !letter.is_whitespace() && !letter.is_control() && !is_unseen(*letter));
        let whole: String = seen.flat_map(char::to_lowercase).collect();
        let source = SOURCES.iter().find_map(|source| whole.strip_prefix(source));
        // In an id, `~` replaces a separator that is part of the service's name.
        let qualified = match source {
            Some(rest) if whole.starts_with("x-host-") => rest.replacen(':', ".", 1).replace('~', ":"),
            Some(rest) => rest.replace('~', "."),
            None => whole.clone(),
        };
        Self { whole, qualified }
    }

    /// As `service.tool`, or without a service.
    pub(super) fn qualified(&self) -> &str {
        &self.qualified
    }

    /// Whether it has the form of one of the protocol's own tools.
    pub(super) fn is_core(&self) -> bool {
        self.whole.starts_with(CORE)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.whole.eq_ignore_ascii_case(name) || self.qualified.eq_ignore_ascii_case(name)
    }

    /// The part after this service and its dot; empty if only the service is named.
    pub(super) fn after(&self, service: &ServiceName) -> Option<&str> {
        let service = service.as_str();
        let (start, rest) = self.qualified.split_at_checked(service.len())?;
        match start.eq_ignore_ascii_case(service) {
            true if rest.is_empty() => Some(rest),
            true => rest.strip_prefix('.'),
            false => None,
        }
    }
}

/// Characters that are invisible.
fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_however_it_is_spelled() {
        let pay = ServiceName::parse("Pay").unwrap();
        for spelled in [
            "pay.pay",
            "PAY.pay",
            " pay.pay",
            "pay.pay\t",
            "pay . pay",
            "p\u{200b}ay.pay\u{feff}",
            "\u{ff50}\u{ff41}\u{ff59}\u{ff0e}\u{ff50}\u{ff41}\u{ff59}",
            "connector:pay.pay",
            "Connector:Pay.Pay",
            "mcp:pay.pay",
            "x-host-pay:pay",
        ] {
            assert_eq!(NormalName::of(spelled).after(&pay), Some("pay"), "{spelled}");
        }
        assert_eq!(NormalName::of("PAY").after(&pay), Some(""));
        for other in ["payments.pay", "xpay.pay", "p.ay", "", "\u{440}ay.pay"] {
            assert_eq!(NormalName::of(other).after(&pay), None, "{other}");
        }
        for (id, service) in [("connector:a~b.pay", "a.b"), ("x-host-a~b:pay", "a:b"), ("x-host-a.b:pay", "a.b")] {
            assert_eq!(NormalName::of(id).after(&ServiceName::parse(service).unwrap()), Some("pay"), "{id}");
        }
        assert!(NormalName::of("OpenWOP:http.fetch").is_core());
        assert!(NormalName::of(" Send ").is("send") && !NormalName::of("sends").is("send"));
    }
}
