//! What guarding costs: the verdict of policies, whole calls beside it, a guardian on the other side of a socket, three of
//! them at once. Every figure stands beside a baseline of the same run; a missed target is named and fails nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a benchmark may stop at the first surprise"
)]

mod calls;
mod figures;
mod history;
mod remote;
mod rules;
mod scene;
#[path = "../authority/table.rs"]
mod table;
mod verdict;

/// As in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the parts that are named, or all.
fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    // One thread, so that its processor time is that of the gate's side alone.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut targets = Vec::new();
    if run("verdict") {
        targets.extend(runtime.block_on(verdict::run()));
    }
    if run("remote") {
        targets.extend(runtime.block_on(remote::run()));
    }
    if run("calls") {
        calls::run();
    }
    println!();
    for target in targets {
        println!("{target}");
    }
}
