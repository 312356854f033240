//! OWASP AOS 0.1.0, and AOS as Joch uses it, at `/v1/hooks/aos`: the runtimes of other agents ask at each point of an
//! agent's loop whether it may continue. With a valid key the response is JSON-RPC with status 200, whatever the
//! request was.

use toolgate_api::openwop::hooks::AnswerHooks;

use crate::mount::special;
use crate::router::Route;

pub use self::profile::{HookProfile, HookSettings};

mod asking;
mod endpoint;
mod profile;
mod question;
mod response;

/// The routes of this protocol, which need a key.
pub fn routes() -> Vec<Route> {
    vec![special::<AnswerHooks, _, _>(endpoint::serve)]
}
