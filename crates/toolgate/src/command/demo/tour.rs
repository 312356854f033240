//! The steps of the tour and their expected results. A different result ends it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolgate_api::Endpoint;
use toolgate_api::agents::{AgentRequest, CreateAgent, CreateKey};
use toolgate_api::audit::{EventQuery, ExportLog, ListEvents, ShowLogHead};
use toolgate_api::credentials::{CreateCredentialInVault, CredentialInVaultRequest};
use toolgate_api::grants::{CreateGrant, DelegateGrant, DelegationRequest, GrantRequest, RevokeGrant};
use toolgate_api::parameters::Limit;
use toolgate_api::services::{ReplaceService, ServiceDefinition};
use toolgate_api::tools::{CallRequest, InvokeTool};
use toolgate_api::vaults::{CreateVault, VaultRequest};
use toolgate_cli::client::{Client, ClientError, TypedRequest};
use toolgate_cli::output::at;
use toolgate_cli::{Failure, typed};
use toolgate_model::audit_export::verify;
use toolgate_model::checkpoint::PublicKey;
use toolgate_model::credential::AuthType;
use toolgate_model::event::StoredEvent;
use toolgate_model::id::GrantId;
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::secret::Secret;

use super::gate::DemoGate;
use super::narration::{Members, Narration, Style};
use super::payments::{KEY, Payments};

pub(super) struct Tour<'a> {
    gate: &'a DemoGate,
    payments: &'a Payments,
    narration: Narration,
    administrator: Client,
    /// The number of events that were printed.
    narrated: usize,
    /// For `--keep`.
    keys: Vec<(&'static str, Secret)>,
    credential: String,
}

struct Response {
    status: u16,
    body: Value,
}

struct Agent {
    name: &'static str,
    client: Client,
}

impl<'a> Tour<'a> {
    pub(super) fn new(gate: &'a DemoGate, payments: &'a Payments, narration: Narration) -> Result<Self, Failure> {
        let administrator = Client::new(gate.url(), gate.token())?;
        let credential = String::new();
        Ok(Self { gate, payments, narration, administrator, narrated: 0, keys: Vec::new(), credential })
    }

    pub(super) async fn run_tour(&mut self) -> Result<(), Failure> {
        self.introduce()?;
        let (billing, reports) = self.set_up().await?;
        let charging = json!({"amount_max": 5000, "max_invocations_per_hour": 2});
        self.grant("billing", "charges.create", charging, false).await?;
        let reading = self.grant("billing", "charges.read", json!({}), true).await?;
        self.print_setup().await?;

        self.allowed(&billing).await?;
        self.outside_scope(&billing).await?;
        self.outside_limit(&billing).await?;
        self.too_often(&billing).await?;
        self.delegated(&billing, &reports, &reading).await?;
        self.revoked(&reports, &reading).await?;
        self.verified().await
    }

    pub(super) async fn show_what_runs(&mut self) -> Result<(), Failure> {
        self.grant("billing", "charges.create", json!({"amount_max": 5000}), false).await?;
        self.grant("billing", "charges.read", json!({}), true).await?;
        let token = |name: &str| self.keys.iter().find(|(own, _)| *own == name).map_or("", |(_, key)| key.expose());
        let narration = &self.narration;
        narration.heading("Running until Ctrl-C")?;
        narration.prose("billing has new grants. In another terminal, as billing:")?;
        narration.gap()?;
        for line in [
            format!("export TOOLGATE_URL={}", self.gate.url()),
            format!("export TOOLGATE_TOKEN={}", token("billing")),
            "toolgate tool call payments.charges.create -p amount:=1200 -p currency=usd".to_owned(),
            "toolgate tool call payments.charges.create -p amount:=9900 -p currency=usd".to_owned(),
        ] {
            narration.verbatim(&line)?;
        }
        narration.gap()?;
        narration.prose("As administrator:")?;
        narration.gap()?;
        for line in [
            format!("export TOOLGATE_TOKEN={}", self.gate.token().expose()),
            "toolgate tool list --agent billing".to_owned(),
            "toolgate invocation list".to_owned(),
            "toolgate audit events --limit 1000".to_owned(),
        ] {
            narration.verbatim(&line)?;
        }
        narration.gap()?;
        narration.prose("The key of reports, and the URL of the payments service:")?;
        narration.gap()?;
        narration.verbatim(token("reports"))?;
        narration.verbatim(&self.payments.url())
    }

    fn introduce(&self) -> Result<(), Failure> {
        let narration = &self.narration;
        narration.heading("Toolgate in one minute")?;
        narration.prose(
            "An AI agent charges cards without holding the key of the payments service: the key is sealed in Toolgate, and \
             the agent calls the service through the gate.",
        )?;
        narration.gap()?;
        narration.prose(&format!("gate      {}  a real gate on a temporary ledger", self.gate.url()))?;
        narration.prose(&format!("payments  {}  requires a key, and knows no agents", self.payments.url()))
    }

    async fn set_up(&mut self) -> Result<(Agent, Agent), Failure> {
        let administrator = &self.administrator;
        let vault = VaultRequest { owner_id: None, name: typed("name", "demo")? };
        let vault = administrator.to::<CreateVault>().body(&vault).send().await?.id;
        let credential = CredentialInVaultRequest {
            vault_id: None,
            service: typed("service", "payments")?,
            label: typed("label", "Payments, demo")?,
            auth_type: AuthType::BearerToken,
            scopes_available: typed("scopes_available", ["charges.create", "charges.read", "refunds.create"])?,
            metadata: None,
            material: json!({"token": KEY}),
            expires_at: None,
        };
        let credential = administrator.to::<CreateCredentialInVault>().at(&vault).body(&credential).send().await?;
        let definition = ServiceDefinition(typed("definition", self.payments.definition())?);
        administrator.to::<ReplaceService>().named("payments").body(&definition).send().await?;
        self.credential = credential.id.to_string();
        let billing = self.agent("billing").await?;
        let reports = self.agent("reports").await?;
        Ok((billing, reports))
    }

    async fn agent(&mut self, name: &'static str) -> Result<Agent, Failure> {
        let permissions = PermissionSet::from_iter([Permission::InvokeTools, Permission::DelegateTools]);
        let agent = AgentRequest { permissions: Some(permissions), ..AgentRequest::new(typed("id", name)?) };
        self.administrator.to::<CreateAgent>().body(&agent).send().await?;
        let made = self.administrator.to::<CreateKey>().named(name).send().await?;
        let key = Secret::new(made.key.map(|key| key.expose().to_owned()).unwrap_or_default());
        let client = Client::new(self.gate.url(), &key)?;
        self.keys.push((name, key));
        Ok(Agent { name, client })
    }

    async fn grant(&self, agent: &str, scope: &str, constraints: Value, delegatable: bool) -> Result<GrantId, Failure> {
        let body = GrantRequest {
            scopes: typed("scopes", [scope])?,
            constraints,
            delegatable: Some(delegatable),
            ..GrantRequest::new(self.credential.clone(), typed("agent_id", agent)?)
        };
        Ok(self.administrator.to::<CreateGrant>().body(&body).send().await?.stated.id)
    }

    async fn print_setup(&mut self) -> Result<(), Failure> {
        self.narration.heading("1. Setup")?;
        self.narration.prose("The administrator does this once. Each change is an event in the log:")?;
        self.narration.gap()?;
        for (request, effect) in [
            ("POST /vaults", "a vault"),
            ("POST /vaults/…/credentials", "the key sk_demo_…, sealed"),
            ("PUT  /services/payments", "charges.create, charges.read, refunds.create"),
            ("POST /agents", "billing and reports, each with a key of the gate"),
            ("POST /grants", "billing: charges.create, amount ≤ 5000, 2 per hour"),
            ("POST /grants", "billing: charges.read, delegatable"),
        ] {
            self.narration.note(Style::Plain, &format!("{request:<28}{effect}"))?;
        }
        self.narration.gap()?;
        let events = self.new_events().await?;
        self.narration.log_in_short(&events)
    }

    async fn allowed(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("2. An allowed call")?;
        self.narration
            .prose("billing charges 20.00. It knows the name of the tool, but not the key of the service.")?;
        self.narration.gap()?;
        let response = self.call(billing, "payments.charges.create", charge(2000)).await?;
        self.expect(&response, 200, None)?;
        self.narration.gap()?;
        let sent = format!("Bearer {KEY}");
        if self.payments.authorizations() != [sent] {
            return Err(differs("the payments service did not receive the key"));
        }
        if response.body.to_string().contains(KEY) {
            return Err(differs("the key reached the agent"));
        }
        self.narration.prose(
            "The gate sent the header `Authorization: Bearer sk_demo_…` to the payments service. The service returned the \
             key in its response, and the gate redacted it.",
        )
    }

    async fn outside_scope(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("3. A tool without a grant")?;
        self.narration.prose("billing calls refunds.create. None of its grants has that scope.")?;
        self.narration.gap()?;
        let parameters = Map::from_iter([("charge".to_owned(), json!("ch_1"))]);
        let response = self.call(billing, "payments.refunds.create", parameters).await?;
        self.expect(&response, 403, Some("GRANT_SCOPE_INSUFFICIENT"))
    }

    async fn outside_limit(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("4. A parameter above its limit")?;
        self.narration.prose("billing charges 9,000.00. The refusal names the parameter and the constraint.")?;
        self.narration.gap()?;
        let response = self.call(billing, "payments.charges.create", charge(900_000)).await?;
        self.expect(&response, 403, Some("GRANT_PARAMETER_DENIED"))
    }

    async fn too_often(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("5. Rate limit")?;
        self.narration
            .prose("The grant allows two calls per hour. Refused calls do not count; the third call is refused.")?;
        self.narration.gap()?;
        let response = self.call(billing, "payments.charges.create", charge(700)).await?;
        self.expect(&response, 200, None)?;
        let response = self.call(billing, "payments.charges.create", charge(800)).await?;
        self.expect(&response, 429, Some("GRANT_RATE_LIMITED"))
    }

    async fn delegated(&mut self, billing: &Agent, reports: &Agent, grant: &GrantId) -> Result<(), Failure> {
        self.narration.heading("6. Delegation")?;
        self.narration.prose("billing delegates charges.read to reports. A delegation never exceeds its source.")?;
        self.narration.gap()?;
        let body = DelegationRequest {
            target_agent_id: Some(typed("target_agent_id", "reports")?),
            scopes: typed("scopes", ["charges.read"])?,
            ..DelegationRequest::default()
        };
        let request = billing.client.to::<DelegateGrant>().at(grant).body(&body);
        let response = self.ask(billing, request, shown(&body, &["target_agent_id", "scopes"])).await?;
        self.expect(&response, 201, None)?;
        let response = self.call(reports, "payments.charges.read", read()).await?;
        self.expect(&response, 200, None)
    }

    async fn revoked(&mut self, reports: &Agent, grant: &GrantId) -> Result<(), Failure> {
        self.narration.heading("7. Revocation")?;
        self.narration.prose("The administrator revokes the grant of billing. Its delegations end with it.")?;
        self.narration.gap()?;
        let administrator = Agent { name: "admin", client: Client::new(self.gate.url(), self.gate.token())? };
        let request = administrator.client.to::<RevokeGrant>().at(grant);
        let response = self.ask(&administrator, request, Vec::new()).await?;
        self.expect(&response, 200, None)?;
        let response = self.call(reports, "payments.charges.read", read()).await?;
        self.expect(&response, 403, Some("GRANT_REVOKED"))
    }

    async fn verified(&self) -> Result<(), Failure> {
        self.narration.heading("8. Verification")?;
        self.narration.prose(
            "The log is signed, and can be verified without the gate, with `toolgate audit export` and `toolgate audit \
             verify`.",
        )?;
        self.narration.gap()?;
        let head = self.administrator.to::<ShowLogHead>().send().await?;
        let key = PublicKey::parse(&head.public_key).map_err(|error| Failure::Said(error.to_string()))?;
        let mut export = Vec::new();
        self.administrator
            .to::<ExportLog>()
            .download(|bytes| {
                export.extend_from_slice(bytes);
                Ok(())
            })
            .await?;
        let verified = verify(export.as_slice(), &key).map_err(|error| Failure::NotVerified(Box::new(error)))?;
        let sentence = format!("Verified: all {} events are present, unchanged and in order.", verified.size);
        self.narration.note(Style::Green, &sentence)?;
        let export = String::from_utf8_lossy(&export);
        if export.contains(KEY) {
            return Err(differs("the key is in the log"));
        }
        let forged = export.replacen("GRANT_RATE_LIMITED", "GRANT_RATE_LIMITEd", 1);
        match verify(forged.as_bytes(), &key) {
            Ok(_) => Err(differs("a modified log was verified")),
            Err(error) => {
                self.narration.note(Style::Yellow, &format!("With one character changed: not verified, {error}."))
            }
        }
    }

    async fn call(&mut self, agent: &Agent, tool: &str, parameters: Map<String, Value>) -> Result<Response, Failure> {
        let body = CallRequest { tool: Some(tool.to_owned()), parameters: Some(parameters), ..CallRequest::default() };
        let request = agent.client.to::<InvokeTool>().body(&body);
        self.ask(agent, request, shown(&body, &["tool", "parameters"])).await
    }

    /// Sends a request; prints it with these members of its body, the response, and the new events.
    async fn ask<E: Endpoint>(
        &mut self,
        who: &Agent,
        request: TypedRequest<'_, E>,
        body: Members,
    ) -> Result<Response, Failure>
    where
        E::Reply: Serialize + DeserializeOwned,
    {
        self.narration.request(who.name, E::METHOD.as_str(), &request.target(), &body)?;
        let response = match request.send().await {
            Ok(reply) => Response { status: E::STATUS.as_u16(), body: json!(reply) },
            Err(ClientError::Refused { status, body }) => Response { status: status.as_u16(), body: json!(body) },
            Err(error) => return Err(error.into()),
        };
        self.narration.response(response.status, &response.printed_members())?;
        let events = self.new_events().await?;
        self.narration.log(&events)?;
        Ok(response)
    }

    /// The events that were not printed yet.
    async fn new_events(&mut self) -> Result<Vec<StoredEvent>, Failure> {
        let query = EventQuery { limit: Some(Limit(Limit::MAXIMUM)), ..EventQuery::default() };
        let page = self.administrator.to::<ListEvents>().query(&query).send().await?;
        let new =
            page.events.into_iter().skip(self.narrated).map(StoredEvent::from_shown).collect::<Result<Vec<_>, _>>()?;
        self.narrated += new.len();
        Ok(new)
    }

    fn expect(&self, response: &Response, status: u16, code: Option<&str>) -> Result<(), Failure> {
        let found = response.body.pointer("/error/code").and_then(Value::as_str);
        if (response.status, found) == (status, code) {
            return Ok(());
        }
        Err(differs(&format!(
            "expected {status} {} from the gate, and received {} {}",
            code.unwrap_or("without an error"),
            response.status,
            found.unwrap_or("without an error")
        )))
    }
}

impl Response {
    fn printed_members(&self) -> Members {
        const SUCCESS: [&str; 7] = ["id", "source", "scopes", "status", "result", "grant_id", "revoked_count"];
        const ERROR: [&str; 5] = ["code", "message", "path", "available_scopes", "retry_after_seconds"];
        let error = at(&self.body, "error");
        let (value, names) = if error.is_object() { (error, &ERROR[..]) } else { (&self.body, &SUCCESS[..]) };
        names.iter().filter_map(|name| Some((*name, value.get(*name)?.clone()))).collect()
    }
}

/// These members of a body, in this order.
fn shown(body: &impl Serialize, names: &[&'static str]) -> Members {
    let body = json!(body);
    names.iter().map(|name| (*name, at(&body, name).clone())).collect()
}

fn charge(amount: u64) -> Map<String, Value> {
    Map::from_iter([("amount".to_owned(), json!(amount)), ("currency".to_owned(), json!("usd"))])
}

fn read() -> Map<String, Value> {
    Map::from_iter([("id".to_owned(), json!("ch_1"))])
}

fn differs(what: &str) -> Failure {
    Failure::Said(format!("unexpected result of the demo: {what}"))
}
