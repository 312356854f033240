//! The index: a slice says what the whole set would say.

use super::*;

#[test]
fn a_rule_about_others_is_not_even_looked_at() {
    let text = (0..200).fold(String::new(), |text, number| {
        text + &format!(
            "forbid(principal == Principal::\"p{number}\", action, resource);
             forbid(principal in Label::\"l{number}\", action, resource);
             forbid(principal, action, resource == Tool::\"t.{number}\");
             forbid(principal, action, resource in Service::\"s{number}\");
             forbid(principal, action in [Action::\"call:t.{number}\", Action::\"result:t.{number}\"], resource);
             forbid(principal, action in Action::\"result\", resource is Tool);
             forbid(principal, action in Action::\"call\", resource is Hook);"
        )
    });
    let set = compile(&text);
    let world = World::new();
    let slice = set.slice(&world.subject(Hook::ToolCallRequest));
    assert!(slice.is_empty());
    assert_eq!(slice.needs(), Needs::default());
    assert_eq!(world.call(&set, &json!({"to": "ann"})), Evaluation::allow());
}

#[test]
fn a_change_of_a_principal_or_a_tool_is_seen_at_once() {
    let set = compile(
        r#"@id("p") forbid(principal in Label::"bad", action, resource);
           @id("t") forbid(principal, action, resource in Label::"bad");"#,
    );
    let mut world = World::new();
    let arguments = json!({"to": "ann"});
    assert!(ids(&world.call(&set, &arguments)).is_empty());
    let definition = ToolDefinition { labels: labels(&["bad"]), ..(*world.definition).clone() };
    world.definition = Arc::new(definition);
    assert_eq!(ids(&world.call(&set, &arguments)), ["t"]);
    world.agent.labels = labels(&["bad"]);
    world.agent.revision += 1;
    assert_eq!(ids(&world.call(&set, &arguments)), ["p", "t"]);
}

#[test]
fn a_slice_is_kept_for_who_comes_again() {
    let set = compile("forbid(principal, action, resource);");
    let world = World::new();
    let first = set.slice(&world.subject(Hook::ToolCallRequest));
    assert!(Arc::ptr_eq(&first, &set.slice(&world.subject(Hook::ToolCallRequest))));
    assert!(!Arc::ptr_eq(&first, &set.slice(&world.subject(Hook::ToolCallResult))));
    let other = HookedTool { registry: None, ..world.tool() };
    let subject = Subject { tool: Some(other), ..world.subject(Hook::ToolCallRequest) };
    assert!(!Arc::ptr_eq(&set.slice(&subject), &set.slice(&subject)));
}

#[test]
fn an_empty_list_of_actions_fits_none() {
    let set = compile("forbid(principal, action in [], resource);");
    assert!(set.slice(&World::new().subject(Hook::ToolCallRequest)).is_empty());
}

#[test]
fn a_set_concerns_exactly_the_events_that_it_has_rules_for_whether_its_slice_is_kept_or_not() {
    let set = compile(
        r#"forbid(principal == Principal::"bot", action, resource);
           forbid(principal, action == Action::"call:mail.list", resource);
           forbid(principal, action in Action::"result", resource in Label::"outbound");"#,
    );
    for agent in ["bot", "other"] {
        for name in ["mail.send", "mail.list"] {
            for hook in [Hook::ToolCallRequest, Hook::ToolCallResult] {
                for registry in [Some(1), None] {
                    let world = World { agent: principal(agent), name: name.to_owned(), ..World::new() };
                    let tool = HookedTool { registry, ..world.tool() };
                    let subject = Subject { tool: Some(tool), ..world.subject(hook) };
                    assert_eq!(set.concerns(&subject), !set.slice(&subject).is_empty(), "{agent} {name} {hook:?}");
                }
            }
        }
    }
    let other = World { agent: principal("other"), ..World::new() };
    assert!(!set.concerns(&other.subject(Hook::ToolCallRequest)));
}
