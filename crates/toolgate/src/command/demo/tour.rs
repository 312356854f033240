//! The tour: what is done, what should come of it, and what that means. A step that goes differently than told ends it.

use http::Method;
use serde_json::{Map, Value, json};
use toolgate_model::audit_export::verify;
use toolgate_model::checkpoint::PublicKey;
use toolgate_model::event::StoredEvent;
use toolgate_model::secret::Secret;

use super::Failure;
use super::gate::DemoGate;
use super::narration::{Members, Narration, Style};
use super::payments::{KEY, Payments};
use crate::client::{Client, ClientError};
use crate::output::at;

/// What everybody calls tools at.
const INVOKE: &str = "/api/v1/tools/invoke";

/// The tour, with everybody in it.
pub(super) struct Tour<'a> {
    gate: &'a DemoGate,
    payments: &'a Payments,
    narration: Narration,
    administrator: Client,
    /// How many events were told already.
    narrated: usize,
    /// The keys of the agents, for `--keep`.
    keys: Vec<(&'static str, Secret)>,
    credential: String,
}

/// What the gate answered.
struct Answer {
    status: u16,
    body: Value,
}

/// An agent of the demo.
struct Agent {
    name: &'static str,
    client: Client,
}

impl<'a> Tour<'a> {
    /// A tour of this gate and this service.
    pub(super) fn new(gate: &'a DemoGate, payments: &'a Payments, narration: Narration) -> Result<Self, Failure> {
        let administrator = Client::new(gate.url(), gate.token())?;
        let credential = String::new();
        Ok(Self { gate, payments, narration, administrator, narrated: 0, keys: Vec::new(), credential })
    }

    /// Walks all of it.
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

    /// Says what is running and how to use it.
    pub(super) async fn show_what_runs(&mut self) -> Result<(), Failure> {
        self.grant("billing", "charges.create", json!({"amount_max": 5000}), false).await?;
        self.grant("billing", "charges.read", json!({}), true).await?;
        let token = |name: &str| self.keys.iter().find(|(own, _)| *own == name).map_or("", |(_, key)| key.expose());
        let narration = &self.narration;
        narration.heading("Still running, until Ctrl-C")?;
        narration.prose("billing has fresh grants. In another terminal, as billing:")?;
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
        narration.prose("As the administrator:")?;
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
        narration.prose("The key of reports, and the payments service itself:")?;
        narration.gap()?;
        narration.verbatim(token("reports"))?;
        narration.verbatim(&self.payments.url())
    }

    fn introduce(&self) -> Result<(), Failure> {
        let narration = &self.narration;
        narration.heading("Toolgate in one minute")?;
        narration.prose(
            "An AI agent shall charge cards, and must not hold the key of the payments service. So the key lies sealed \
             in Toolgate, and the agent calls through the gate.",
        )?;
        narration.gap()?;
        narration.prose(&format!("gate      {}  a real one, on a temporary store", self.gate.url()))?;
        narration.prose(&format!("payments  {}  wants a key, and knows nothing of agents", self.payments.url()))
    }

    async fn set_up(&mut self) -> Result<(Agent, Agent), Failure> {
        let vault = self.make("/api/v1/vaults", json!({"name": "demo"})).await?;
        let credential = json!({
            "service": "payments", "label": "Payments, demo", "auth_type": "bearer_token", "material": {"token": KEY},
            "scopes_available": ["charges.create", "charges.read", "refunds.create"],
        });
        let path = format!("/api/v1/vaults/{}/credentials", text(&vault, "id"));
        self.credential = text(&self.make(&path, credential).await?, "id");
        self.administrator.change(Method::PUT, "/api/v1/services/payments", Some(&self.payments.definition())).await?;
        let billing = self.agent("billing").await?;
        let reports = self.agent("reports").await?;
        Ok((billing, reports))
    }

    async fn agent(&mut self, name: &'static str) -> Result<Agent, Failure> {
        let permissions = json!(["tools.invoke", "tools.delegate"]);
        self.make("/api/v1/agents", json!({"id": name, "permissions": permissions})).await?;
        let made = self.administrator.change(Method::POST, &format!("/api/v1/agents/{name}/keys"), None).await?;
        let key = Secret::new(text(&made, "key"));
        let client = Client::new(self.gate.url(), &key)?;
        self.keys.push((name, key));
        Ok(Agent { name, client })
    }

    async fn grant(&self, agent: &str, scope: &str, constraints: Value, delegatable: bool) -> Result<String, Failure> {
        let body = json!({
            "agent_id": agent, "credential_id": self.credential, "scopes": [scope], "constraints": constraints,
            "delegatable": delegatable,
        });
        Ok(text(&self.make("/api/v1/grants", body).await?, "id"))
    }

    async fn make(&self, path: &str, body: Value) -> Result<Value, Failure> {
        Ok(self.administrator.change(Method::POST, path, Some(&body)).await?)
    }

    async fn print_setup(&mut self) -> Result<(), Failure> {
        self.narration.heading("1. Set up")?;
        self.narration.prose("The administrator does this once, and each of it is an event in the log:")?;
        self.narration.gap()?;
        for (request, effect) in [
            ("POST /vaults", "a vault"),
            ("POST /vaults/…/credentials", "the key sk_demo_…, sealed; it never comes out"),
            ("PUT  /services/payments", "charges.create, charges.read, refunds.create"),
            ("POST /agents", "billing and reports, each with its own gate key"),
            ("POST /grants", "billing: charges.create, amount ≤ 5000, 2 an hour"),
            ("POST /grants", "billing: charges.read, which it may pass on"),
        ] {
            self.narration.note(Style::Plain, &format!("{request:<28}{effect}"))?;
        }
        self.narration.gap()?;
        let events = self.new_events().await?;
        self.narration.log_in_short(&events)
    }

    async fn allowed(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("2. An allowed call")?;
        self.narration.prose("billing charges 20.00. It knows the tool's name, and no key of the service.")?;
        self.narration.gap()?;
        let answer = self.call(billing, "payments.charges.create", charge(2000)).await?;
        self.expect(&answer, 200, None)?;
        self.narration.gap()?;
        let sent = format!("Bearer {KEY}");
        if self.payments.authorizations() != [sent] {
            return Err(differs("the payments service did not get the key"));
        }
        if answer.body.to_string().contains(KEY) {
            return Err(differs("the key reached the agent"));
        }
        self.narration.prose(
            "The payments service got the header `Authorization: Bearer sk_demo_…` from the gate. Careless as it is, it \
             sent the key back in its answer: the agent still did not see it.",
        )
    }

    async fn outside_scope(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("3. A tool that was not granted")?;
        self.narration.prose("billing tries to give money back. Its grants do not hold that scope.")?;
        self.narration.gap()?;
        let parameters = Map::from_iter([("charge".to_owned(), json!("ch_1"))]);
        let answer = self.call(billing, "payments.refunds.create", parameters).await?;
        self.expect(&answer, 403, Some("GRANT_SCOPE_INSUFFICIENT"))
    }

    async fn outside_limit(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("4. A parameter beyond its limit")?;
        self.narration.prose("billing charges 9,000.00. The answer says which parameter breaks which rule.")?;
        self.narration.gap()?;
        let answer = self.call(billing, "payments.charges.create", charge(900_000)).await?;
        self.expect(&answer, 403, Some("GRANT_PARAMETER_DENIED"))
    }

    async fn too_often(&mut self, billing: &Agent) -> Result<(), Failure> {
        self.narration.heading("5. Too often")?;
        self.narration.prose("The grant allows two calls an hour. Refused calls do not count, a third is too many.")?;
        self.narration.gap()?;
        let answer = self.call(billing, "payments.charges.create", charge(700)).await?;
        self.expect(&answer, 200, None)?;
        let answer = self.call(billing, "payments.charges.create", charge(800)).await?;
        self.expect(&answer, 429, Some("GRANT_RATE_LIMITED"))
    }

    async fn delegated(&mut self, billing: &Agent, reports: &Agent, grant: &str) -> Result<(), Failure> {
        self.narration.heading("6. Passing it on")?;
        self.narration.prose("billing lets reports read charges: within its own grant, never beyond it.")?;
        self.narration.gap()?;
        let path = format!("/api/v1/grants/{grant}/delegate");
        let body = vec![("target_agent_id", json!("reports")), ("scopes", json!(["charges.read"]))];
        let answer = self.ask(billing, Method::POST, &path, body).await?;
        self.expect(&answer, 201, None)?;
        let answer = self.call(reports, "payments.charges.read", read()).await?;
        self.expect(&answer, 200, None)
    }

    async fn revoked(&mut self, reports: &Agent, grant: &str) -> Result<(), Failure> {
        self.narration.heading("7. Taking it back")?;
        self.narration.prose("The administrator revokes billing's grant. What was passed on ends with it.")?;
        self.narration.gap()?;
        let administrator = Agent { name: "admin", client: Client::new(self.gate.url(), self.gate.token())? };
        let answer = self.ask(&administrator, Method::DELETE, &format!("/api/v1/grants/{grant}"), Vec::new()).await?;
        self.expect(&answer, 200, None)?;
        let answer = self.call(reports, "payments.charges.read", read()).await?;
        self.expect(&answer, 403, Some("GRANT_REVOKED"))
    }

    async fn verified(&self) -> Result<(), Failure> {
        self.narration.heading("8. The proof")?;
        self.narration.prose(
            "The log is signed and can be verified without the gate: `toolgate audit export`, then `toolgate audit \
             verify`.",
        )?;
        self.narration.gap()?;
        let head = self.administrator.get("/api/v1/audit/head").await?;
        let key = PublicKey::parse(&text(&head, "public_key")).map_err(|error| Failure::Said(error.to_string()))?;
        let mut export = Vec::new();
        self.administrator
            .download("/api/v1/audit/export", |bytes| {
                export.extend_from_slice(bytes);
                Ok(())
            })
            .await?;
        let verified = verify(export.as_slice(), &key).map_err(|error| Failure::NotVerified(Box::new(error)))?;
        let sentence = format!("Verified: all {} events are there, unchanged and in order.", verified.size);
        self.narration.note(Style::Green, &sentence)?;
        let export = String::from_utf8_lossy(&export);
        if export.contains(KEY) {
            return Err(differs("the key is in the log"));
        }
        let forged = export.replacen("GRANT_RATE_LIMITED", "GRANT_RATE_LIMITEd", 1);
        match verify(forged.as_bytes(), &key) {
            Ok(_) => Err(differs("a changed log verified")),
            Err(error) => {
                self.narration.note(Style::Yellow, &format!("With one letter of it changed: not verified, {error}."))
            }
        }
    }

    async fn call(&mut self, agent: &Agent, tool: &str, parameters: Map<String, Value>) -> Result<Answer, Failure> {
        let body = vec![("tool", json!(tool)), ("parameters", Value::Object(parameters))];
        self.ask(agent, Method::POST, INVOKE, body).await
    }

    /// Asks the gate; tells the request, the answer and what was written down.
    async fn ask(&mut self, who: &Agent, method: Method, path: &str, body: Members) -> Result<Answer, Failure> {
        self.narration.request(who.name, method.as_str(), path, &body)?;
        let value: Map<String, Value> = body.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let value = (!value.is_empty()).then_some(Value::Object(value));
        let answer = match who.client.exchange(method, path, value.as_ref()).await {
            Ok((status, body)) => Answer { status: status.as_u16(), body },
            Err(ClientError::Refused { status, body }) => Answer { status: status.as_u16(), body: *body },
            Err(error) => return Err(error.into()),
        };
        self.narration.answer(answer.status, &answer.worth_telling())?;
        let events = self.new_events().await?;
        self.narration.log(&events)?;
        Ok(answer)
    }

    /// The events that were not told yet.
    async fn new_events(&mut self) -> Result<Vec<StoredEvent>, Failure> {
        let mut page = self.administrator.get("/api/v1/audit/events?limit=1000").await?;
        let events = match page.get_mut("events").map(Value::take) {
            Some(Value::Array(events)) => events,
            _ => Vec::new(),
        };
        let new = events.into_iter().skip(self.narrated).map(StoredEvent::from_shown).collect::<Result<Vec<_>, _>>()?;
        self.narrated += new.len();
        Ok(new)
    }

    fn expect(&self, answer: &Answer, status: u16, code: Option<&str>) -> Result<(), Failure> {
        let found = answer.body.pointer("/error/code").and_then(Value::as_str);
        if (answer.status, found) == (status, code) {
            return Ok(());
        }
        Err(differs(&format!(
            "the gate should have answered {status} {}, and answered {} {}",
            code.unwrap_or("without an error"),
            answer.status,
            found.unwrap_or("without an error")
        )))
    }
}

impl Answer {
    /// The members that a newcomer should see.
    fn worth_telling(&self) -> Members {
        const ANSWER: [&str; 7] = ["id", "source", "scopes", "status", "result", "grant_id", "revoked_count"];
        const ERROR: [&str; 5] = ["code", "message", "path", "available_scopes", "retry_after_seconds"];
        let error = at(&self.body, "error");
        let (value, names) = if error.is_object() { (error, &ERROR[..]) } else { (&self.body, &ANSWER[..]) };
        names.iter().filter_map(|name| Some((*name, value.get(*name)?.clone()))).collect()
    }
}

fn charge(amount: u64) -> Map<String, Value> {
    Map::from_iter([("amount".to_owned(), json!(amount)), ("currency".to_owned(), json!("usd"))])
}

fn read() -> Map<String, Value> {
    Map::from_iter([("id".to_owned(), json!("ch_1"))])
}

fn text(value: &Value, name: &str) -> String {
    at(value, name).as_str().unwrap_or_default().to_owned()
}

fn differs(what: &str) -> Failure {
    Failure::Said(format!("the demo went differently than told: {what}"))
}
