//! Access tokens through the real binary: which are accepted, whom they identify, and what becomes of them.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::GateSetup;
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::token_signer::TokenSigner;
use toolgate_testkit::upstream::TokenIssuer;

use crate::world::{Actor, World, block_on, setup};

mod hostile;
mod identifying;
mod metadata;
mod official_client;
mod secrecy;

/// Where clients reach the gate, as far as it knows.
pub(crate) const PUBLIC_URL: &str = "https://gate.example.com";

/// A gate that trusts an issuer, and a key of that issuer.
struct Trusting {
    world: World,
    issuer: TokenIssuer,
    signer: TokenSigner,
}

impl Trusting {
    fn sqlite() -> Self {
        Self::of(setup(), None, "")
    }

    fn postgres() -> Self {
        let database = block_on(TestDatabase::migrated());
        Self::of(setup().database(database.url()), Some(database), "")
    }

    /// A gate whose file says this of its issuer besides what it must.
    fn saying(further: &str) -> Self {
        Self::of(setup(), None, further)
    }

    fn of(setup: GateSetup, database: Option<TestDatabase>, further: &str) -> Self {
        let signer = TokenSigner::es256("first");
        let issuer = TokenIssuer::start(&[&signer]);
        let setup = trusting(setup.reaching_loopback(), &issuer.url(), PUBLIC_URL, further);
        Self { world: World::of(&setup, database), issuer, signer }
    }

    /// Claims of a token for this gate that lives for ten minutes.
    fn claims(&self, subject: &str) -> Value {
        let now = self.world.admin().time();
        let seconds = |time: toolgate_model::time::Timestamp| time.as_millis() / 1000;
        json!({
            "iss": self.issuer.url(),
            "aud": format!("{PUBLIC_URL}/mcp"),
            "sub": subject,
            "client_id": subject,
            "iat": seconds(now),
            "exp": seconds(now.plus(Duration::from_secs(600))),
            "jti": format!("{subject}-{}", now.as_millis()),
        })
    }

    /// Somebody with a token of the issuer for this subject.
    fn bearer(&self, subject: &str) -> Actor {
        self.world.actor(subject, &self.signer.token(&self.claims(subject)))
    }

    /// Registers the subject of the same name for an agent; answers the key.
    fn register(&self, agent: &str, subject: &str) -> Value {
        let body = json!({"token_subject": {"issuer": self.issuer.url(), "subject": subject}});
        self.world.admin().post(&format!("/api/v1/agents/{agent}/keys"), &body).created()
    }
}

/// A gate with a file of identity, in which this issuer may be on this machine.
pub(crate) fn trusting(setup: GateSetup, issuer: &str, public_url: &str, further: &str) -> GateSetup {
    let file = setup.home().join("identity.toml");
    let text = format!("[[issuers]]\nissuer = \"{issuer}\"\nprivate_hosts = [\"127.0.0.1\"]\n{further}\n");
    std::fs::write(&file, text).unwrap();
    setup.environment("TOOLGATE_IDENTITY_FILE", &file).environment("TOOLGATE_PUBLIC_URL", public_url)
}
