//! What calls of models cost.

use super::*;
use crate::constraint::Cost;
use crate::spending::CostBasis;
use crate::step::ModelStep;

fn model(more: Value) -> ModelStep {
    match step("chat", more) {
        Step::Model(model) => model,
        other => panic!("{other:?}"),
    }
}

fn priced() -> ModelStep {
    model(
        json!({"prices": {"large": {"input": "3", "output": "15", "cache_read": "0.3"}}, "default_output_tokens": 1000}),
    )
}

#[test]
fn a_reservation_covers_the_longest_answer_and_the_usage_settles_it_exactly() {
    let request = json!({"model": "large", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100});
    let reserved = priced().most(&request).unwrap();
    assert!((1_500..2_000).contains(&reserved.micros()), "{reserved}");
    let answer = json!({"model": "large-2026", "usage": {"prompt_tokens": 20, "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 10}}});
    // 10 * 3 + 10 * 0.3 + 10 * 15 millionths.
    let charged = priced().charge(&request, reserved, Some(&answer));
    assert_eq!(charged, (Cost::from_micros(183).unwrap(), CostBasis::Stated));
    let dear = json!({"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 10}});
    assert_eq!(priced().charge(&request, reserved, Some(&dear)), (reserved, CostBasis::Capped));
}

#[test]
fn a_request_without_a_bound_or_a_price_has_no_known_cost() {
    let request = |model: &str| json!({"model": model, "messages": []});
    assert!(priced().most(&request("large")).is_some(), "the default bound is written into it");
    assert_eq!(priced().most(&request("small")), None);
    let unbounded = model(json!({"prices": {"*": {"input": 1, "output": 1}}}));
    assert_eq!(unbounded.most(&request("large")), None);
    let counted = match step("count_tokens", json!({})) {
        Step::Model(step) => step.most(&request("any")),
        _ => None,
    };
    assert_eq!(counted, Cost::from_micros(0));
}

#[test]
fn an_answer_without_usage_is_estimated_and_one_that_was_cut_off_costs_what_was_written() {
    let request =
        json!({"model": "large", "messages": [{"role": "user", "content": "x".repeat(300)}], "max_tokens": 1000});
    let reserved = priced().most(&request).unwrap();
    let of = |result: Value| priced().charge(&request, reserved, Some(&result));
    let (unknown, basis) = of(json!({"usage": null, "streamed": {"text_bytes": 300, "finished": false}}));
    assert_eq!(basis, CostBasis::Estimated);
    // 300 bytes of text are 100 tokens to write, and as many to read besides the frame of the request.
    assert!((1_800..2_200).contains(&unknown.micros()), "{unknown}");
    let cut = json!({"usage": {"prompt_tokens": 100, "completion_tokens": 1},
        "streamed": {"text_bytes": 300, "finished": false}});
    assert_eq!(of(cut), (Cost::from_micros(1_800).unwrap(), CostBasis::Estimated));
    let (whole, basis) = priced().charge(&request, reserved, None);
    assert!(basis == CostBasis::Estimated && whole <= reserved);
}
