//! Model providers: what requests to them and their answers contain, in the APIs of OpenAI and Anthropic, and what an answer
//! costs. Everything here is pure: what guardians are asked about is found here, and asked elsewhere.

pub use self::api::{Api, Vendor};
pub use self::fail_over::FailOver;
pub use self::prices::Prices;
pub use self::template::{SCOPE, Template};
pub use self::usage::Usage;

mod api;
pub(crate) mod estimate;
mod fail_over;
mod prices;
pub(crate) mod refused;
pub(crate) mod replace;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod sent;
pub(crate) mod stream;
mod template;
mod usage;

#[cfg(test)]
mod tests;
