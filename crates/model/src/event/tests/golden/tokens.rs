//! Keys for the subjects of access tokens.

use super::*;
use crate::token_subject::{IssuerUrl, SubjectName, TokenSubject};

pub(super) fn tokens() -> Vec<EventPayload> {
    let subject = TokenSubject {
        issuer: IssuerUrl::parse("https://login.example.com").unwrap(),
        subject: SubjectName::parse("billing").unwrap(),
    };
    vec![EventPayload::KeyCreated(KeyCreated {
        certificate: None,
        expires_at: None,
        key_id: KeyId::new(at(0), [7; 10]),
        principal_id: principal("billing"),
        token_subject: Some(subject),
    })]
}
