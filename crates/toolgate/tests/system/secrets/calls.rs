//! Secrets at work: credentials of every kind in calls to a service that tells all that it is sent and that it knows.

use serde_json::json;

use super::Story;
use crate::hostile_upstream::{echoing, kinds};
use crate::tool_user::ToolUser;
use crate::world::World;

/// Calls that succeed, fail and are refused, and whatever can be read of them.
pub(super) fn use_in_calls(story: &mut Story, world: &World) {
    for kind in kinds::all() {
        story.secrets.extend(kind.secrets.iter().cloned());
        let upstream = echoing(&kind);
        let user = ToolUser::of(world, kind.credential(&upstream));
        story.hears(user.calls("any", json!({"note": "a success"}))).ok();
        story.hears(user.calls("any", json!({"status": 500}))).expect(502);
        let again = json!({"idempotency_key": "once"});
        for _ in 0..2 {
            story.hears(user.calls_with("any", json!({"note": "kept"}), again.clone())).ok();
        }
        story.hears(user.calls("other", json!({}))).refused(403, "GRANT_SCOPE_INSUFFICIENT");
        drop(upstream);
        story.hears(user.calls("any", json!({"note": "nobody there"}))).expect(502);
        story.hears(user.agent.get("/api/v1/tools")).ok();
        story.hears(user.agent.get("/api/v1/tools/granted")).ok();
        story.hears(user.agent.get(&format!("/api/v1/grants/{}/invocations", user.grant))).ok();
        for record in user.history() {
            story.hears(user.admin.get(&format!("/api/v1/invocations/{}", crate::world::id(&record)))).ok();
        }
    }
}
