//! Calls of models.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{StepError, StepQuestion, StepStream, StreamMode};
use crate::constraint::Cost;
use crate::guard::{Content, Hook, Role};
use crate::llm::estimate::{most, without_usage};
use crate::llm::refused::{self, Allowed};
use crate::llm::stream::AnswerStream;
use crate::llm::{Api, FailOver, Prices, Usage, Vendor, replace, request, response, sent};
use crate::service::DefinitionError;
use crate::service::reading::{Fields, flag, refuse, texts, word};
use crate::spending::CostBasis;

const MEMBERS: [&str; 11] = [
    "api",
    "betas",
    "default_output_tokens",
    "fail_over",
    "fetched_urls",
    "hosted_tools",
    "kind",
    "max_choices",
    "members",
    "models",
    "prices",
];
/// How many answers to one request may be asked for where a definition does not say.
const CHOICES: u64 = 4;
/// The parameter that holds the names of the beta features of Anthropic's API, which are sent in a header.
pub const BETAS: &str = "anthropic_beta";
/// The same for the version of that API.
pub const VERSION: &str = "anthropic_version";

/// A call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStep {
    pub api: Api,
    /// The models that can be called; if empty, all.
    pub models: BTreeSet<String>,
    pub prices: Prices,
    /// The tools of the provider that may be used, which go round this gate.
    pub hosted_tools: BTreeSet<String>,
    /// Whether the provider may fetch addresses that a request names.
    pub fetched_urls: bool,
    /// Members of requests that are sent although this gate does not know them.
    pub members: BTreeSet<String>,
    /// How many answers to one request may be asked for.
    pub max_choices: u64,
    /// The bound of answers whose request has none.
    pub default_output_tokens: Option<u64>,
    /// The beta features that may be used; a name that ends in `*` stands for all that begin like it.
    pub betas: BTreeSet<String>,
    /// The providers that a call is made at where this one fails, in order.
    pub fail_over: Vec<FailOver>,
}

impl ModelStep {
    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &MEMBERS)?;
        let set = |name| Ok::<_, DefinitionError>(fields.read(name, names)?.unwrap_or_default());
        Ok(Self {
            api: fields.need("api", |value, path| word(value, path, &Api::WORDS))?,
            models: set("models")?,
            prices: fields.read("prices", Prices::from_json)?.unwrap_or_default(),
            hosted_tools: set("hosted_tools")?,
            fetched_urls: fields.read("fetched_urls", flag)?.unwrap_or_default(),
            members: set("members")?,
            max_choices: fields.read("max_choices", count)?.unwrap_or(CHOICES),
            default_output_tokens: fields.read("default_output_tokens", count)?,
            betas: set("betas")?,
            fail_over: fields.read("fail_over", FailOver::list)?.unwrap_or_default(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members =
            Map::from_iter([("kind".to_owned(), json!("model")), ("api".to_owned(), json!(self.api.as_str()))]);
        for (name, names) in [
            ("betas", &self.betas),
            ("hosted_tools", &self.hosted_tools),
            ("members", &self.members),
            ("models", &self.models),
        ] {
            if !names.is_empty() {
                members.insert(name.to_owned(), json!(names));
            }
        }
        if self.fetched_urls {
            members.insert("fetched_urls".to_owned(), json!(true));
        }
        if self.max_choices != CHOICES {
            members.insert("max_choices".to_owned(), json!(self.max_choices));
        }
        if !self.fail_over.is_empty() {
            members.insert("fail_over".to_owned(), self.fail_over.iter().map(FailOver::to_json).collect());
        }
        let bound = self.default_output_tokens.map(|bound| ("default_output_tokens".to_owned(), json!(bound)));
        members.extend(bound);
        members.extend(self.prices.to_json().map(|prices| ("prices".to_owned(), prices)));
        Value::Object(members)
    }

    pub(super) fn check(&self, parameters: &Value) -> Result<(), StepError> {
        let Some(members) = parameters.as_object() else { return Ok(()) };
        let model = members.get("model").and_then(Value::as_str);
        let model = model.ok_or_else(|| StepError::new("/model", "must be the name of a model"))?;
        if !self.models.is_empty() && !self.models.contains(model) {
            return Err(StepError::new("/model", "is not a model of this provider that can be called"));
        }
        let mut request = members.clone();
        if let Some(betas) = request.remove(BETAS) {
            self.check_betas(&betas)?;
        }
        if self.api.vendor() == Vendor::Anthropic {
            request.remove(VERSION);
        }
        let allowed = Allowed {
            hosted_tools: &self.hosted_tools,
            fetched_urls: self.fetched_urls,
            members: &self.members,
            max_choices: self.max_choices,
            has_prices: !self.prices.is_empty(),
        };
        refused::check(self.api, &request, &allowed)
    }

    /// A beta feature may run something at the provider.
    fn check_betas(&self, betas: &Value) -> Result<(), StepError> {
        let at = format!("/{BETAS}");
        let named = betas.as_str().ok_or_else(|| StepError::new(&at, "must be a text"))?;
        match named.split(',').map(str::trim).find(|beta| !self.allows_beta(beta)) {
            None => Ok(()),
            Some(_) => Err(StepError::new(&at, "has a beta feature that is not among the `betas` of the step")),
        }
    }

    /// Whether a beta feature may be used.
    pub fn allows_beta(&self, beta: &str) -> bool {
        self.betas.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => beta.starts_with(beginning),
            None => beta == allowed,
        })
    }

    pub(super) fn sent<'a>(&self, parameters: &'a Value) -> Cow<'a, Value> {
        sent::sent(self.api, parameters, self.default_output_tokens)
    }

    pub(super) fn request_hooks(&self) -> &'static [Hook] {
        &[Hook::AgentTrigger, Hook::Message(Role::User), Hook::Message(Role::System), Hook::ToolCallResult]
    }

    pub(super) fn response_hooks(&self) -> &'static [Hook] {
        if self.api.generates() { &[Hook::Message(Role::Agent), Hook::ToolCallRequest] } else { &[] }
    }

    pub(super) fn of_request(&self, parameters: &Value) -> Result<Vec<StepQuestion>, StepError> {
        request::questions(self.api, parameters)
    }

    pub(super) fn of_response(&self, _parameters: &Value, result: &Value) -> Result<Vec<StepQuestion>, StepError> {
        response::questions(self.api, result)
    }

    pub(super) fn replace(
        &self,
        document: &mut Value,
        question: &StepQuestion,
        content: Content<'static>,
    ) -> Result<(), StepError> {
        replace::replace(document, question, content)
    }

    /// The names of the tools that a request offers, and of those whose results it has.
    pub(super) fn client_tools(&self, parameters: &Value) -> Vec<String> {
        request::client_tools(self.api, parameters)
    }

    pub(super) fn stream(&self, parameters: &Value, mode: StreamMode) -> StepStream {
        // Structured output, and several answers side by side, can be judged and modified only as a whole.
        let mode = match mode {
            StreamMode::Units if sent::is_structured(parameters) || sent::choices(parameters) > 1 => StreamMode::Whole,
            mode => mode,
        };
        StepStream::new(AnswerStream::new(self.api, mode, !sent::asks_for_usage(parameters)))
    }

    /// The most that a call can cost; `None` if nobody knows.
    pub fn most(&self, parameters: &Value) -> Option<Cost> {
        if self.api.is_free() {
            return Cost::from_micros(0);
        }
        let row = self.prices.of(model_of(parameters), None)?;
        let sent = self.sent(parameters);
        row.cost(&most(self.api, &sent, row)?)
    }

    /// What a call has cost by its answer, of which this much was reserved; never more. `None` for the answer means that
    /// there is none, and so nothing that says what was used.
    pub fn charge(&self, parameters: &Value, reserved: Cost, answer: Option<&Value>) -> (Cost, CostBasis) {
        let requested = model_of(parameters);
        let answered = answer.and_then(|answer| answer.get("model")).and_then(Value::as_str);
        let Some(row) = self.prices.of(requested, answered) else { return (reserved, CostBasis::Estimated) };
        let usage = answer.and_then(|answer| Usage::read(self.api, answer));
        let streamed = |name: &str| answer.and_then(|answer| answer.pointer(&format!("/streamed/{name}")));
        let is_cut = streamed("finished").is_some_and(|finished| *finished == Value::Bool(false));
        let (usage, basis) = match usage {
            Some(usage) if !is_cut => (usage, CostBasis::Stated),
            usage => {
                // An answer that says nothing is as long as it looks.
                let length = || answer.map_or(0, |answer| u64::try_from(answer.to_string().len()).unwrap_or(u64::MAX));
                let bytes = streamed("text_bytes").and_then(Value::as_u64).unwrap_or_else(length);
                let estimate = without_usage(parameters, row, bytes);
                // A stream that was cut off has stated its input, and not all of its output.
                let known = usage.map(|usage| Usage { output: usage.output.max(estimate.output), ..usage });
                (known.unwrap_or(estimate), CostBasis::Estimated)
            }
        };
        match row.cost(&usage) {
            Some(cost) if cost <= reserved => (cost, basis),
            _ if basis == CostBasis::Stated => (reserved, CostBasis::Capped),
            _ => (reserved, basis),
        }
    }
}

fn model_of(parameters: &Value) -> &str {
    parameters.get("model").and_then(Value::as_str).unwrap_or_default()
}

fn names(value: &Value, path: &str) -> Result<BTreeSet<String>, DefinitionError> {
    Ok(texts(value, path)?.into_iter().map(str::to_owned).collect())
}

fn count(value: &Value, path: &str) -> Result<u64, DefinitionError> {
    value.as_u64().filter(|count| *count > 0).ok_or_else(|| refuse(path, "must be an integer of at least 1"))
}
