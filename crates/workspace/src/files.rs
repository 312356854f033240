//! `Read`, `Write` and `Edit`: one file at a time.

mod edit;
mod read;
mod replace;

pub use edit::Edit;
pub use read::Read;
pub use replace::Write;
