//! Servers that are processes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use toolgate_testkit::mcp_server::McpProcess;

use super::*;
use crate::mcp::questions::Questions;
use crate::mcp::stdio::{CallListener, Process};
use toolgate_gate::call::UpstreamProgress;
use toolgate_gate::ports::client_link::{ClientLink, Unanswered};
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::service::HiddenCharacters;

fn mount(program: &McpProcess, conduct: &str) -> StdioMount {
    let starts = program.starts_file().display().to_string();
    StdioMount {
        name: "mounted".to_owned(),
        tenants: BTreeSet::from([TenantId::default_tenant()]),
        digest: "sha256:the-command".to_owned(),
        command: program.command().iter().map(OsString::from).collect(),
        leads_group: false,
        directory: None,
        environment: vec![("CONDUCT".to_owned(), conduct.to_owned()), ("STARTS".to_owned(), starts)],
        credential: Some("TOKEN".to_owned()),
        stateful: false,
        max_processes: 2,
        idle: Duration::from_secs(600),
        keep: None,
    }
}

async fn started(mounts: &McpMounts, agent: Option<&PrincipalId>) -> Result<Arc<Process>, SourceFailure> {
    let service = ServiceName::parse("mounted").unwrap();
    let (tenant, credential, material) = (TenantId::default_tenant(), credential(), material());
    let ids = || mounts.next_id();
    let deadline = now() + Duration::from_secs(60);
    let sessions = &*mounts.sessions;
    let user = PeerUser { tenant: &tenant, service: &service, principal: agent, guard: &NoMessageGuard, sessions };
    mounts.processes.of(&user, (Some(&credential), &material), input(), deadline, &ids).await
}

/// What the clients of these tests can be asked for.
fn input() -> InputCapabilities {
    InputCapabilities::of(Some(&json!({"elicitation": {}})))
}

async fn call(mounts: &McpMounts, by: &str, what: &str) -> Result<String, SourceFailure> {
    call_within(mounts, by, what, Duration::from_secs(60)).await
}

async fn call_within(mounts: &McpMounts, by: &str, what: &str, time: Duration) -> Result<String, SourceFailure> {
    let by = agent(by);
    let process = started(mounts, Some(&by)).await?;
    let (mapping, arguments) = (McpMapping::of_tool("count"), json!({"do": what}));
    let message = mapping.message(arguments.as_object().unwrap(), None).unwrap();
    let request = Request::rendered(&mapping, Cow::Owned(message), &arguments);
    let ids = || mounts.next_id();
    let mut peer = ProcessPeer {
        process: &process,
        agent: Some(&by),
        deadline: now() + time,
        traced: None,
        listener: None,
        ids: &ids,
    };
    peer.ask(&request).await.map(|raw| text_of(&raw))
}

/// Waits until this holds, for something that another process does.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

fn runs(process: &str) -> bool {
    // A process that has ended and was not waited for is still there.
    let status = std::fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[tokio::test]
async fn a_process_of_either_era_is_started_once_and_called_many_times() {
    for conduct in ["legacy", "modern"] {
        let program = McpProcess::new();
        let (mounts, _) = mounts(vec![mount(&program, conduct)]);
        let one = call(&mounts, "one", "count").await.unwrap();
        assert!(one.starts_with("1 of "), "{one}");
        let calls = (0..20).map(|_| call(&mounts, "other", "count"));
        let mut counted: Vec<String> =
            futures_util::future::join_all(calls).await.into_iter().map(|text| text.unwrap()).collect();
        counted.sort_by_key(|text| text.split(' ').next().and_then(|count| count.parse::<u32>().ok()));
        assert!(counted[19].starts_with("21 of "), "{counted:?}");
        assert_eq!(program.starts(), 1);
    }
}

#[tokio::test]
async fn a_server_that_ends_at_an_unknown_request_is_started_again_in_its_own_era() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "strict")]);
    assert!(call(&mounts, "one", "count").await.unwrap().starts_with("1 of "));
    assert_eq!(program.starts(), 2);
}

#[tokio::test]
async fn a_process_has_its_own_credential_and_nothing_of_the_gates_environment() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    let text = call(&mounts, "one", "token").await.unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    assert_eq!(text, format!("token {SECRET} of {home} in "));
}

#[tokio::test]
async fn a_stateful_server_has_a_process_for_each_principal_within_its_limit() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![StdioMount { stateful: true, ..mount(&program, "legacy") }]);
    for by in ["one", "two", "one", "two"] {
        call(&mounts, by, "count").await.unwrap();
    }
    assert_eq!(program.starts(), 2);
    assert!(call(&mounts, "one", "count").await.unwrap().starts_with("3 of "));
    // The longest idle one gives way.
    assert!(call(&mounts, "three", "count").await.unwrap().starts_with("1 of "));
    assert!(call(&mounts, "one", "count").await.unwrap().starts_with("4 of "));
    assert!(call(&mounts, "two", "count").await.unwrap().starts_with("1 of "), "it was ended");
}

#[tokio::test]
async fn the_process_of_a_principal_is_used_between_two_records() {
    let program = McpProcess::new();
    let idle = Duration::from_millis(200);
    let stateful = StdioMount { stateful: true, idle, max_processes: 16, ..mount(&program, "legacy") };
    let (mounts, sessions) = mounts_recording(vec![stateful]);
    call(&mounts, "one", "count").await.unwrap();
    call(&mounts, "one", "count").await.unwrap();
    call(&mounts, "two", "exit").await.unwrap_err();
    until(|| sessions.recorded().len() == 4).await;
    let recorded = sessions.recorded();
    assert_eq!(recorded[0], "begun: mounted for one");
    assert!(recorded.contains(&"completed: mounted for one".to_owned()), "nobody used it: {recorded:?}");
    assert!(recorded.contains(&"failed: mounted for two".to_owned()), "it has ended by itself: {recorded:?}");
    // One that is shared keeps nothing for anybody.
    let (mounts, sessions) = mounts_recording(vec![mount(&program, "legacy")]);
    call(&mounts, "one", "count").await.unwrap();
    assert!(sessions.recorded().is_empty());
}

#[tokio::test]
async fn what_no_honest_process_does_is_a_clear_failure() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    for (what, expected) in [
        ("malformed", "a malformed message"),
        ("wrong-id", "has the id of no request"),
        ("exit", "has ended by itself"),
        ("giant", "larger than is read"),
    ] {
        let failure = call(&mounts, "one", what).await.unwrap_err();
        assert!(failure.reason.contains(expected), "{what}: {}", failure.reason);
        assert!(failure.sent && !failure.timed_out);
        // It was started again at once after the first end, and not after the second.
    }
    assert!(call(&mounts, "one", "noise").await.is_err_and(|failure| failure.reason.contains("started again in")));
}

#[tokio::test]
async fn lines_that_are_no_messages_are_passed_over_and_requests_of_the_server_refused() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    assert_eq!(call(&mounts, "one", "noise").await.unwrap(), "quiet");
    assert_eq!(call(&mounts, "one", "ask").await.unwrap(), "refused");
}

#[tokio::test]
async fn progress_of_a_process_is_passed_on_without_the_secret() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    let process = started(&mounts, None).await.unwrap();
    let (mapping, arguments) = (McpMapping::of_tool("count"), json!({"do": "slow"}));
    let message = mapping.message(arguments.as_object().unwrap(), None).unwrap();
    let mut request = Request::rendered(&mapping, Cow::Owned(message), &arguments);
    request.observed = true;
    let reported = Mutex::new(Vec::new());
    let sink = |progress: UpstreamProgress| reported.lock().unwrap().push(progress);
    let (ids, redactor, reporter) = (|| mounts.next_id(), Redactor::new(&material()), Reporter::new(&sink));
    let deadline = now() + Duration::from_secs(60);
    let listener = Some(CallListener { reporter: Some(&reporter), questions: None, redactor: &redactor });
    let mut peer = ProcessPeer { process: &process, agent: None, deadline, traced: None, listener, ids: &ids };
    assert_eq!(text_of(&peer.ask(&request).await.unwrap()), "done");
    let message = Some("[REDACTED]".to_owned());
    let step = |progress| UpstreamProgress { progress, total: Some(2.0), message: message.clone() };
    assert_eq!(*reported.lock().unwrap(), [step(1.0), step(2.0)]);
}

#[tokio::test]
async fn a_process_that_crashes_at_its_start_is_started_ever_less_often() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "crash")]);
    for _ in 0..20 {
        let failure = call(&mounts, "one", "count").await.unwrap_err();
        assert!(!failure.sent);
    }
    // Two starts for each of two tries, then there is a pause.
    assert!(program.starts() <= 4, "{}", program.starts());
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    let program = McpProcess::new();
    let file = program.directory().join("cancelled");
    let mut mount = mount(&program, "legacy");
    mount.environment.push(("CANCELLED".to_owned(), file.display().to_string()));
    let (mounts, _) = mounts(vec![mount]);
    call(&mounts, "one", "count").await.unwrap();
    let failure = call_within(&mounts, "one", "silent", Duration::from_millis(100)).await.unwrap_err();
    assert!(failure.timed_out && failure.sent);
    until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.contains("requestId"))).await;
    assert_eq!(call(&mounts, "one", "noise").await.unwrap(), "quiet");
}

#[tokio::test]
async fn with_the_mounts_a_process_and_all_that_it_started_end() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    let child = call(&mounts, "one", "child").await.unwrap();
    assert!(runs(&child));
    drop(mounts);
    until(|| !runs(&child)).await;
}

#[tokio::test]
async fn an_idle_process_is_stopped() {
    let program = McpProcess::new();
    let idle = Duration::from_millis(50);
    let (mounts, _) = mounts(vec![StdioMount { idle, ..mount(&program, "legacy") }]);
    let process = started(&mounts, None).await.unwrap();
    until(|| process.has_ended()).await;
}

/// Waits until a process has ended, and fails if it lives on.
async fn ended(process: &Process) {
    tokio::time::timeout(Duration::from_secs(60), until(|| process.has_ended())).await.expect("the process ends");
}

#[tokio::test]
async fn a_process_that_prints_and_is_not_used_is_stopped_as_often_as_it_is_started() {
    let program = McpProcess::new();
    let idle = Duration::from_millis(200);
    let (mounts, _) = mounts(vec![StdioMount { idle, ..mount(&program, "noisy") }]);
    for start in 1..=4 {
        call(&mounts, "one", "count").await.unwrap();
        ended(&started(&mounts, None).await.unwrap()).await;
        assert_eq!(program.starts(), start, "its end is no crash");
    }
}

#[tokio::test]
async fn inspections_are_no_use_of_a_process() {
    let program = McpProcess::new();
    let idle = Duration::from_millis(300);
    let (mounts, _) = mounts(vec![StdioMount { idle, ..mount(&program, "legacy") }]);
    call(&mounts, "one", "count").await.unwrap();
    let process = started(&mounts, None).await.unwrap();
    let inspecting = async {
        while !process.has_ended() {
            // The last one may find that it is just being stopped.
            let _ = inspect(&mounts).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), inspecting).await.expect("the process ends");
}

#[tokio::test]
async fn a_mount_of_another_tenant_or_without_its_secret_is_not_started() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    let ids = || mounts.next_id();
    let (deadline, credential) = (now() + Duration::from_secs(60), credential());
    let (own, other) = (TenantId::default_tenant(), TenantId::parse("other").unwrap());
    for (tenant, name, material) in
        [(&other, "mounted", material()), (&own, "unknown", material()), (&own, "mounted", Material::new())]
    {
        let (service, sessions) = (ServiceName::parse(name).unwrap(), &*mounts.sessions);
        let user = PeerUser { tenant, service: &service, principal: None, guard: &NoMessageGuard, sessions };
        let refused = mounts.processes.of(&user, (Some(&credential), &material), input(), deadline, &ids).await;
        assert_eq!(refused.err().unwrap().kind, FailureKind::NotExecutable);
    }
    assert_eq!(program.starts(), 0);
}

async fn inspect(mounts: &McpMounts) -> Result<ServerOffer, SourceFailure> {
    let material = material();
    let access = Access {
        redactor: Redactor::new(&material),
        material,
        renewal: &Fixed,
        messages: &NoMessageGuard,
        stream: None,
        client: None,
    };
    let target = MountTarget {
        tenant: TenantId::default_tenant(),
        service: ServiceName::parse("mounted").unwrap(),
        transport: MountTransport::Stdio { name: "mounted".to_owned(), credential: Some(Box::new(credential())) },
    };
    mounts.inspect(&target, Some(access), &NoMessageGuard).await
}

#[tokio::test]
async fn a_process_is_inspected_like_a_server() {
    let program = McpProcess::new();
    let (mounts, _) = mounts(vec![mount(&program, "legacy")]);
    let offer = inspect(&mounts).await.unwrap();
    assert_eq!((offer.era, offer.server.name.as_str()), (McpEra::Legacy, "process"));
    assert_eq!(offer.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["count"]);
}

/// A client whose user is called Ann.
#[derive(Debug)]
struct Ann;

#[async_trait]
impl ClientLink for Ann {
    fn capabilities(&self) -> InputCapabilities {
        input()
    }

    async fn ask(&self, _: &str, _: Map<String, Value>) -> Result<Map<String, Value>, Unanswered> {
        let result = json!({"action": "accept", "content": {"name": "Ann"}});
        Ok(result.as_object().cloned().unwrap_or_default())
    }

    fn log(&self, _: Map<String, Value>) {}
}

#[tokio::test]
async fn a_process_asks_the_client_of_its_only_call_if_it_runs_for_one_principal() {
    for (stateful, expected) in [(true, "hello Ann"), (false, "refused")] {
        let program = McpProcess::new();
        let (mounts, _) = mounts(vec![StdioMount { stateful, ..mount(&program, "legacy") }]);
        let by = agent("one");
        let process = started(&mounts, Some(&by)).await.unwrap();
        let (redactor, questions) = (Redactor::new(&material()), Questions::new(&Ann, HiddenCharacters::Show));
        let (ids, deadline) = (|| mounts.next_id(), now() + Duration::from_secs(60));
        let listener = CallListener { reporter: None, questions: Some(&questions), redactor: &redactor };
        let listener = Some(listener);
        let mut peer = ProcessPeer { process: &process, agent: Some(&by), deadline, traced: None, listener, ids: &ids };
        let (mapping, arguments) = (McpMapping::of_tool("count"), json!({"do": "elicit"}));
        let message = mapping.message(arguments.as_object().unwrap(), None).unwrap();
        let request = Request::rendered(&mapping, Cow::Owned(message), &arguments);
        assert_eq!(peer.ask(&request).await.map(|raw| text_of(&raw)).unwrap(), expected);
    }
}
