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
    assert!(slice.is_empty(), "{}", slice.len());
    assert_eq!(slice.needs(), Needs::default());
    assert_eq!(world.call(&set, &json!({"to": "ann"})), Judgement::allow());
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
