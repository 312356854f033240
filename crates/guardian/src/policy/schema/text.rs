//! Writes the schema in Cedar syntax: the fixed part, then two actions for each tool.

use std::collections::BTreeSet;
use std::fmt::Write;

use toolgate_model::guard::Hook;

use super::EXTERNAL;
use crate::policy::shape::Shape;

/// The part that does not depend on the catalog.
const FIXED: &str = r#"// Everything that rules can refer to. Generated from the catalog of tools and changes with it.

entity Label;
entity Service;
entity Principal in [Label] = {
  id: String,
  kind: String,
  labels: Set<String>,
  scopes: Set<String>,
};
entity Tool in [Service, Label] = {
  name: String,
  service: String,
  tier: String,
  egress: String,
  labels: Set<String>,
  idempotent: Bool,
  external: Bool,
};
entity Hook;

type Spent = { today: decimal, run: decimal };
type Calls = { today: Long, run: Long };
type Time = { now: datetime, hour: Long, minute: Long, weekday: String, date: String };
type Result = { text: String, isError: Bool };

action "call", "result", "hook";
"#;

/// The context attributes of every hook.
const CIRCUMSTANCES: &str = "    reasoning?: String, session?: String, run?: String, user?: String,
    actor: Principal, dialect: String, marks: Set<String>, detected: Set<String>,
    spent: Spent, calls: Calls, time: Time, address: ipaddr,
";

/// Names that Cedar requires in quotes.
const RESERVED: [&str; 10] = ["true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar"];

/// The schema for tools with these names and arguments.
pub(super) fn write<'a>(tools: impl Iterator<Item = (&'a str, Shape)>) -> String {
    let mut text = FIXED.to_owned();
    write_hooks(&mut text);
    write_actions(&mut text, EXTERNAL, "{}");
    let mut type_names = BTreeSet::new();
    for (tool, arguments) in tools {
        let type_name = type_name(tool, &mut type_names);
        append(&mut text, format_args!("\ntype {type_name} = "));
        write_type(&mut text, &arguments, 0);
        text.push_str(";\n");
        write_actions(&mut text, tool, &type_name);
    }
    text
}

fn write_hooks(text: &mut String) {
    let others = Hook::ALL.into_iter().filter(|hook| !matches!(hook, Hook::ToolCallRequest | Hook::ToolCallResult));
    let names: Vec<String> = others.map(|hook| format!("  \"hook:{}\"", hook.as_str())).collect();
    append(
        text,
        format_args!(
            "\naction\n{}\nin [\"hook\"] appliesTo {{\n  principal: Principal, resource: Hook,\n  context: {{\n    \
             text: String, method?: String, tool?: String,\n{CIRCUMSTANCES}  }},\n}};\n",
            names.join(",\n")
        ),
    );
}

/// The actions for calling a tool and for using its result.
fn write_actions(text: &mut String, tool: &str, arguments: &str) {
    for (group, result) in [("call", ""), ("result", "    result: Result,\n")] {
        text.push_str("action ");
        write_quoted(text, &format!("{group}:{tool}"));
        append(
            text,
            format_args!(
                " in [\"{group}\"] appliesTo {{\n  principal: Principal, resource: Tool,\n  context: {{\n    \
                 arguments: {arguments}, argumentsText: String,\n{result}{CIRCUMSTANCES}  }},\n}};\n"
            ),
        );
    }
}

/// Writes the type of this shape.
pub(super) fn write_type(text: &mut String, shape: &Shape, depth: usize) {
    match shape {
        Shape::Text | Shape::Json => text.push_str("String"),
        Shape::Long => text.push_str("Long"),
        Shape::Bool => text.push_str("Bool"),
        Shape::Decimal => text.push_str("decimal"),
        Shape::Set(item) => {
            text.push_str("Set<");
            write_type(text, item, depth);
            text.push('>');
        }
        Shape::Record(members) if members.is_empty() => text.push_str("{}"),
        Shape::Record(members) => {
            text.push_str("{\n");
            for (name, member) in members {
                text.push_str(&"  ".repeat(depth + 1));
                write_name(text, name);
                text.push_str(if member.required { ": " } else { "?: " });
                write_type(text, &member.shape, depth + 1);
                text.push_str(",\n");
            }
            text.push_str(&"  ".repeat(depth));
            text.push('}');
        }
    }
}

fn write_name(text: &mut String, name: &str) {
    let is_plain = name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
        && name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric());
    if is_plain && !RESERVED.contains(&name) {
        text.push_str(name);
    } else {
        write_quoted(text, name);
    }
}

fn write_quoted(text: &mut String, name: &str) {
    text.push('"');
    for character in name.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            // Escape everything that a reader cannot see.
            hidden if hidden.is_control() || hidden.is_whitespace() && hidden != ' ' => {
                append(text, format_args!("{}", hidden.escape_unicode()));
            }
            plain => text.push(plain),
        }
    }
    text.push('"');
}

/// A unique type name for a tool's arguments, of the characters that Cedar allows.
fn type_name(tool: &str, taken: &mut BTreeSet<String>) -> String {
    let allowed = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let plain = format!("Arguments_{}", tool.chars().map(allowed).collect::<String>());
    let mut name = plain.clone();
    let mut count = 1;
    while !taken.insert(name.clone()) {
        count += 1;
        name = format!("{plain}_{count}");
    }
    name
}

fn append(text: &mut String, written: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(written);
}
