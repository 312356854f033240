//! Whatever is said and happens, in whatever order: one end, and it stays.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Say { by: &'static str, approve: bool, answer: Option<&'static str>, at: i64 },
    End { status: ApprovalStatus, at: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    let by = prop_oneof![Just("agent"), Just("host"), Just("ann"), Just("ben"), Just("cleo")];
    let answer = prop_oneof![Just(None), Just(Some("left")), Just(Some("middle"))];
    let say = (by, any::<bool>(), answer, 0..END + 1_000).prop_map(|(by, approve, answer, at)| Step::Say {
        by,
        approve,
        answer,
        at,
    });
    let end = (0..ApprovalStatus::ALL.len(), 0..END + 1_000)
        .prop_map(|(place, at)| Step::End { status: ApprovalStatus::ALL[place], at });
    prop_oneof![4 => say, 1 => end]
}

/// The approval after a step, if the step changed it.
fn take(approval: &Approval, step: &Step) -> Option<Approval> {
    match *step {
        Step::Say { by, approve, answer, at: millis } => {
            let decision = if approve { Decision::Approve } else { Decision::Deny };
            let word = Vote { at: at(millis), answer: answer.map(str::to_owned), ..vote(by, decision) };
            match say(approval, word, &[]) {
                Ok(Decided::Ended(next)) => {
                    assert!(matches!(next.status, ApprovalStatus::Approved | ApprovalStatus::Denied));
                    Some(next)
                }
                Ok(Decided::Counted(next)) => {
                    assert!(next.status.is_open() && next.given() < next.rule.approvers);
                    Some(next)
                }
                Err(_) => None,
            }
        }
        Step::End { status, at: millis } => approval.ended(status, "ended", at(millis)),
    }
}

proptest! {
    #[test]
    fn no_sequence_of_words_and_ends_gives_a_second_end(
        steps in proptest::collection::vec(step(), 0..24),
        approvers in 1_u32..4,
        asks in any::<bool>(),
        host_is_person in any::<bool>(),
    ) {
        let start = if asks { question(json!({"options": ["left", "right"]})) } else { pending() };
        let rule = ApprovalRule { approvers, ..ApprovalRule::default() };
        let mut approval = Approval { rule, actor: principal("host"), actor_is_person: host_is_person, ..start };
        let mut ends = 0;
        for step in &steps {
            let Some(next) = take(&approval, step) else { continue };
            prop_assert!(approval.status.is_open(), "an end was changed by {:?}", step);
            ends += u32::from(!next.status.is_open());
            approval = next;
        }
        prop_assert!(ends <= 1);
        prop_assert_eq!(ends == 1, approval.resolved_at.is_some());
        prop_assert_eq!(approval.status == ApprovalStatus::Approved, approval.given() >= approvers);
        prop_assert_eq!(approval.answer.is_some(), asks && approval.status == ApprovalStatus::Approved);
        prop_assert!(approval.votes.iter().all(|vote| vote.by != principal("agent")));
        let mut people: Vec<&PrincipalId> = approval
            .votes
            .iter()
            .filter(|vote| vote.decision == Decision::Approve)
            .map(|vote| &vote.by)
            .collect();
        people.sort();
        people.dedup();
        prop_assert_eq!(u32::try_from(people.len()).unwrap(), approval.given());
    }
}
