//! A mounted server of which some tools, or all, are accepted.

use serde_json::{Map, Value, json};

use crate::world::{Actor, text};

pub struct Accepted {
    admin: Actor,
    credential: Value,
}

impl Accepted {
    /// Mounts a server, or the process of this name, and accepts it with all of its tools.
    pub fn whole(admin: &Actor, name: &str, url: Option<&str>) -> Self {
        Self::with(admin, name, url, |_| true)
    }

    /// The same, with these tools.
    pub fn of(admin: &Actor, name: &str, url: Option<&str>, tools: &[&str]) -> Self {
        Self::with(admin, name, url, |tool| tools.contains(&tool))
    }

    fn with(admin: &Actor, name: &str, url: Option<&str>, is_wanted: impl Fn(&str) -> bool) -> Self {
        let vault = admin.vault();
        let mut body = json!({"name": name, "vault_id": vault});
        if let Some(url) = url {
            body["url"] = json!(url);
        }
        admin.post("/api/v1/mounts", &body).created();
        let review = admin.get(&format!("/api/v1/mounts/{name}/review")).ok();
        let tools = review["tools"].as_array().unwrap().iter().filter(|tool| is_wanted(text(tool, "/upstream")));
        let tools: Map<String, Value> =
            tools.map(|tool| (text(tool, "/upstream").to_owned(), tool["hash"].clone())).collect();
        let decision = json!({"server": review["server"]["hash"], "tools": tools});
        admin.post(&format!("/api/v1/mounts/{name}/accept"), &decision).ok();
        let credentials = admin.get(&format!("/api/v1/vaults/{vault}/credentials")).ok();
        Self { admin: admin.clone(), credential: credentials["credentials"][0].clone() }
    }

    /// Grants all that was accepted, and all that is forwarded.
    pub fn grant(&self, agent: &Actor) {
        let scopes = &self.credential["scopes_available"];
        self.admin.grants(text(&self.credential, "/id"), &agent.id, json!({"scopes": scopes}));
    }
}
