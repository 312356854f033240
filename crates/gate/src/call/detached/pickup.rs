//! Calls that are made again instead of being waited for. A client that can neither wait nor follow a call repeats it; as long
//! as the first one waits, or its result was not fetched, the repetition is that call and no approver is asked twice. Once
//! the result was fetched, the same call is a new one.
//!
//! What is known here spares a repetition the stages. Whether a call is one is decided by the transaction that stores it,
//! so that of two made at the same moment, here or on two replicas, only one asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_model::canonical::to_canonical;
use toolgate_model::id::InvocationId;
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::merkle::sha256;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;

use crate::call::request::CallOptions;
use crate::call::{CallRequest, Denial, Detaching, Invoked, Pipeline};
use crate::identify::Caller;
use crate::ports::entropy::random;
use crate::ports::ledger::{DetachedCall, PageRequest};
use crate::refusal::{Code, Refusal};

/// What the idempotency keys of such calls begin with.
const PREFIX: &str = "again-";
/// How many hexadecimal digits of the digest are in a key.
const DIGITS: usize = 32;
/// How long what was read is relied on where other processes detach calls too. Nobody repeats a call that fast.
const SHARED_FOR: Duration = Duration::from_secs(1);

/// The calls that can be picked up, by caller.
#[derive(Default)]
pub(crate) struct Pickups(Mutex<HashMap<TenantId, HashMap<PrincipalId, Known>>>);

struct Known {
    read_at: Timestamp,
    by_digest: HashMap<String, InvocationId>,
}

/// What came of a call that may be the repetition of another one.
#[derive(Debug, Clone, PartialEq)]
pub enum Repeated {
    /// It is one of its own.
    New(Invoked),
    /// It is this one.
    Known(InvocationId),
}

impl Pickups {
    fn state(&self) -> MutexGuard<'_, HashMap<TenantId, HashMap<PrincipalId, Known>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipeline {
    /// Makes a call that never waits for an approver on its connection, or picks up the same call of the same caller that
    /// was detached before.
    pub async fn invoke_or_pick_up(self: &Arc<Self>, caller: Caller, request: CallRequest) -> Result<Repeated, Denial> {
        let known = self.known_pickups(&caller).await.map_err(Denial::unrecorded)?;
        if known {
            let input = request.input.as_ref().and_then(|input| input.digested());
            let digest = digest(&request.tool, &request.parameters, input);
            if let Some(id) = self.pickup(&caller, &digest) {
                let found = self.detached_calls.detached_call(caller.tenant(), id).await;
                match found.map_err(Denial::unrecorded)? {
                    Some(_) => return Ok(Repeated::Known(id)),
                    // Its result was kept long enough, or was fetched elsewhere.
                    None => self.forget_pickup(&caller, id),
                }
            }
        }
        let options = CallOptions { may_detach: true, detaching: Detaching::ToBePickedUp, ..CallOptions::default() };
        let invoked = self.run_detachable(caller.clone(), request, options).await?;
        if let Invoked::Detached(id) = &invoked {
            self.note_pickup(&caller, *id).await;
        }
        Ok(Repeated::New(invoked))
    }

    /// Forgets a call whose result the caller has got: the same call is a new one from here on.
    pub async fn picked_up(&self, caller: &Caller, id: InvocationId) -> Result<(), Refusal> {
        self.forget_pickup(caller, id);
        self.detached_calls.forget_outcome(caller.tenant(), id).await.map(drop)
    }

    fn forget_pickup(&self, caller: &Caller, id: InvocationId) {
        if let Some(known) = self.pickups.state().get_mut(caller.tenant()).and_then(|of| of.get_mut(caller.id())) {
            known.by_digest.retain(|_, call| *call != id);
        }
    }

    /// Whether there is anything that the caller can pick up, after a look at the ledger where that is due.
    async fn known_pickups(&self, caller: &Caller) -> Result<bool, Refusal> {
        let now = self.clock.now();
        let is_shared = self.approvals.shares_approvals();
        let is_recent = |known: &Known| !is_shared || (known.read_at <= now && now < known.read_at.plus(SHARED_FOR));
        if let Some(known) = self.pickups.state().get(caller.tenant()).and_then(|of| of.get(caller.id()))
            && is_recent(known)
        {
            return Ok(!known.by_digest.is_empty());
        }
        let page = PageRequest::first(PageRequest::LIMIT);
        let found = self.detached_calls.detached_calls(caller.tenant(), Some(caller.id()), page).await?;
        // Newest first: of several for the same call the oldest is picked up first.
        let by_digest: HashMap<String, InvocationId> = found.items.iter().filter_map(digest_of).collect();
        let is_any = !by_digest.is_empty();
        let mut state = self.pickups.state();
        let of_tenant = state.entry(caller.tenant().clone()).or_default();
        of_tenant.insert(caller.id().clone(), Known { read_at: now, by_digest });
        Ok(is_any)
    }

    fn pickup(&self, caller: &Caller, digest: &str) -> Option<InvocationId> {
        self.pickups.state().get(caller.tenant())?.get(caller.id())?.by_digest.get(digest).copied()
    }

    /// The key has the digest, so that other processes find the call too.
    async fn note_pickup(&self, caller: &Caller, id: InvocationId) {
        let Ok(Some(stored)) = self.detached_calls.detached_call(caller.tenant(), id).await else { return };
        let Some((digest, id)) = digest_of(&stored.call) else { return };
        let mut state = self.pickups.state();
        let of_tenant = state.entry(caller.tenant().clone()).or_default();
        if let Some(known) = of_tenant.get_mut(caller.id()) {
            known.by_digest.insert(digest, id);
        }
    }
}

/// The idempotency key of a call of this tool with these parameters: never the same twice.
pub(in crate::call) fn key(tool: &str, parameters: &Value, input: Option<Value>) -> Result<IdempotencyKey, Refusal> {
    let number = u64::from_be_bytes(random()?);
    let key = format!("{PREFIX}{}-{number:016x}", digest(tool, parameters, input));
    IdempotencyKey::parse(&key).map_err(|error| Refusal::new(Code::Internal, error.to_string()))
}

/// The part of such a key that the keys of all repetitions of the call begin with.
pub(in crate::call) fn shared_part(key: &IdempotencyKey) -> Option<String> {
    let length = PREFIX.len() + DIGITS + 1;
    key.as_str().get(..length).filter(|part| part.starts_with(PREFIX) && part.ends_with('-')).map(str::to_owned)
}

/// The same for the same call: tool and canonical parameters.
pub fn call_digest(tool: &str, parameters: &impl Serialize) -> String {
    digest(tool, parameters, None)
}

/// The same, with what the client has sent for the server.
fn digest(tool: &str, parameters: &impl Serialize, input: Option<Value>) -> String {
    let mut call = json!({"tool": tool, "parameters": parameters});
    if let (Some(input), Some(members)) = (input, call.as_object_mut()) {
        members.insert("input".to_owned(), input);
    }
    let mut hex = sha256(&to_canonical(&call)).to_hex();
    hex.truncate(DIGITS);
    hex
}

fn digest_of(call: &DetachedCall) -> Option<(String, InvocationId)> {
    let key = call.idempotency_key.as_ref()?.as_str().strip_prefix(PREFIX)?;
    Some((key.get(..DIGITS)?.to_owned(), call.id))
}
