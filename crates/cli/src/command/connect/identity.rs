//! The agent of a client and its key, which is saved as a profile that only the started command reads. Planned first, and
//! created after the user has confirmed.

use http::StatusCode;
use toolgate_api::agents::{Agent, AgentRequest, CreateAgent, CreateKey, KeyRequest, ShowAgent, Whoami};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalKind;
use toolgate_model::secret::Secret;

use super::client::ConnectClient;
use super::unusable;
use crate::client::{Client, ClientError};
use crate::command::connection::{Access, logins_file};
use crate::command::values::typed;
use crate::command::{Failure, typos};
use crate::logins::{Logins, Owner, Profile};
use crate::output::clean;

pub(super) struct Identity {
    pub(super) agent: String,
    pub(super) profile: String,
    pub(super) url: String,
    owner: Owner,
    state: State,
}

enum State {
    /// The login is saved and works.
    Saved,
    /// The agent has no login here.
    NoKey,
    NoAgent,
}

impl Identity {
    /// Finds out what is missing. Nothing is changed.
    pub(super) async fn plan(
        access: &Access,
        client: &Client,
        asked: Option<&str>,
        connected: ConnectClient,
    ) -> Result<Self, Failure> {
        let caller = client.to::<Whoami>().send().await.map_err(|error| unusable(error.into()))?;
        let owner = |agent: &str| Owner { principal: agent.to_owned(), tenant: caller.tenant_id.to_string() };
        let is_itself = caller.kind == PrincipalKind::Agent && asked.is_none_or(|asked| asked == caller.id.as_str());
        if is_itself {
            refuse_approver(&caller)?;
            let agent = caller.id.to_string();
            let profile = access.profile.clone().ok_or_else(|| {
                let reason =
                    "the key of the agent is from the environment; save it with `toolgate login`, and pass --profile";
                unusable(Failure::Said(reason.to_owned()))
            })?;
            let owner = owner(&agent);
            return Ok(Self { agent, profile, url: access.url.clone(), owner, state: State::Saved });
        }
        let agent = asked.unwrap_or(connected.name()).to_owned();
        let owner = owner(&agent);
        let is_known = match client.to::<ShowAgent>().named(&agent).send().await {
            Ok(found) => {
                refuse_approver(&found)?;
                true
            }
            Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) if asked.is_none() => false,
            Err(error) => return Err(unusable(typos::with_agent(client, error, &agent).await)),
        };
        let logins = Logins::read(&file()?)?;
        let saved =
            logins.profiles().iter().find(|saved| saved.url == access.url && saved.owner.as_ref() == Some(&owner));
        let state = match saved {
            _ if !is_known => State::NoAgent,
            Some(saved) if works(saved).await? => State::Saved,
            _ => State::NoKey,
        };
        let profile = saved.map_or_else(|| logins.name_for(&access.url, &owner), |saved| saved.name.clone());
        Ok(Self { agent, profile, url: access.url.clone(), owner, state })
    }

    /// What [`Identity::establish`] will do, for the user.
    pub(super) fn announcement(&self) -> String {
        let (agent, url, profile) = (clean(&self.agent), clean(&self.url), clean(&self.profile));
        match self.state {
            State::Saved => format!("The client uses {url} as agent {agent}, with the saved login {profile}."),
            State::NoKey => format!("Creates a key of agent {agent} at {url}, and saves it as login {profile}."),
            State::NoAgent => {
                format!("Creates agent {agent} and a key of it at {url}, and saves the key as login {profile}.")
            }
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        !matches!(self.state, State::Saved)
    }

    /// Creates what is missing, and saves the key with mode 0600.
    pub(super) async fn establish(&self, client: &Client, connected: ConnectClient) -> Result<(), Failure> {
        if let State::NoAgent = self.state {
            let name = Some(typed("name", connected.title())?);
            let body = AgentRequest { name, ..AgentRequest::new(typed("id", &self.agent)?) };
            client.to::<CreateAgent>().body(&body).send().await?;
        }
        if let State::Saved = self.state {
            return Ok(());
        }
        let label = Some(typed("label", format!("toolgate connect {}", connected.name()))?);
        let body = KeyRequest { label, ..KeyRequest::default() };
        let new = client.to::<CreateKey>().named(&self.agent).body(&body).send().await?;
        let key = new.key.as_ref().ok_or_else(|| Failure::Said("the gate returned no key; try again".to_owned()))?;
        let key = Secret::new(key.expose().to_owned());
        let path = file()?;
        let mut logins = Logins::read(&path)?;
        let profile =
            Profile { name: self.profile.clone(), url: self.url.clone(), owner: Some(self.owner.clone()), key };
        logins.add(profile);
        Ok(logins.write(&path)?)
    }
}

/// A client must not decide the approvals of its own calls.
fn refuse_approver(agent: &Agent) -> Result<(), Failure> {
    let id = clean(agent.id.as_str());
    if agent.kind != PrincipalKind::Agent {
        let reason = format!("{id} is a {}, and a client must be an agent", agent.kind.as_str());
        return Err(unusable(Failure::Said(reason)));
    }
    if agent.permissions.has(Permission::DecideApprovals) {
        let reason = format!("{id} has the permission `approvals.decide`, which the agent of a client must not have");
        return Err(unusable(Failure::Said(reason)));
    }
    Ok(())
}

/// Whether the key of a login is valid.
async fn works(saved: &Profile) -> Result<bool, Failure> {
    match Client::new(&saved.url, &saved.key)?.to::<Whoami>().send().await {
        Ok(_) => Ok(true),
        Err(ClientError::Refused { status: StatusCode::UNAUTHORIZED, .. }) => Ok(false),
        Err(error) => Err(unusable(error.into())),
    }
}

fn file() -> Result<std::path::PathBuf, Failure> {
    logins_file().ok_or_else(|| Failure::Said("neither HOME nor XDG_CONFIG_HOME is set; set HOME".to_owned()))
}
