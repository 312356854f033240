//! Constraints as JSON: parsed strictly (unknown members are rejected by name) and written in one normal form, which is
//! also the stored form.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::parameter::ParameterPath;
use super::pattern::Pattern;
use super::rule::{Denial, ParameterRule};
use super::value::{DeniedValues, ValueText, read_text, value_text};
use super::{ConstraintError, Constraints, Cost, HostSet, NetworkSet, Number};

/// The kinds of constraint, by the names of the protocol.
const KINDS: [&str; 6] = [
    "allowed_hosts",
    "allowed_parameters",
    "denied_parameters",
    "ip_allowlist",
    "max_cost_per_invocation",
    "max_invocations_per_hour",
];
/// More parameters than any tool has; keeps a grant small.
const PARAMETER_LIMIT: usize = 256;
/// Values, networks or hosts in one list.
const LIST_LIMIT: usize = 1024;

impl Constraints {
    /// Parses the JSON form; `null` for a kind means that it is not set.
    pub fn from_json(value: &Value) -> Result<Self, ConstraintError> {
        let mut constraints = Self::default();
        let members = match value {
            Value::Null => return Ok(constraints),
            Value::Object(members) => members,
            _ => return Err(refuse("constraints", "must be an object")),
        };
        for (name, value) in members {
            let path = format!("constraints.{name}");
            if value.is_null() && KINDS.contains(&name.as_str()) {
                continue;
            }
            match name.as_str() {
                "max_invocations_per_hour" => {
                    let count = value.as_u64().filter(|&count| count <= 1_000_000_000);
                    constraints.max_invocations_per_hour =
                        Some(count.ok_or_else(|| refuse(&path, "must be an integer from 0 to 1000000000"))?);
                }
                "max_cost_per_invocation" => {
                    let cost = value.as_f64().and_then(Cost::from_dollars);
                    let reason = "must be a non-negative amount of US dollars with at most six decimal places";
                    constraints.max_cost_per_invocation = Some(cost.ok_or_else(|| refuse(&path, reason))?);
                }
                "allowed_parameters" => {
                    for (key, value) in object(value, &path)? {
                        add_allowed(&mut constraints.allowed_parameters, key, value, &format!("{path}.{key}"))?;
                    }
                }
                "denied_parameters" => constraints.denied_parameters = denials(value, &path)?,
                "ip_allowlist" => {
                    let networks = NetworkSet::parse(texts(value, &path)?).map_err(|reason| refuse(&path, &reason))?;
                    constraints.ip_allowlist = Some(networks);
                }
                "allowed_hosts" => {
                    let hosts = HostSet::parse(texts(value, &path)?).map_err(|reason| refuse(&path, &reason))?;
                    constraints.allowed_hosts = Some(hosts);
                }
                // The protocol's shorthand: a bound on a parameter directly under `constraints`. A name that begins
                // like the other kinds is more likely a misspelt kind (`max_invocations_per_min`) than a parameter.
                _ if !name.starts_with("max_") && bound(name, value).is_some() => {
                    add_allowed(&mut constraints.allowed_parameters, name, value, &path)?
                }
                _ => {
                    let known = KINDS.join(", ");
                    return Err(refuse(
                        &path,
                        &format!("is not a known constraint; use {known}, or NAME_max or NAME_min with a number"),
                    ));
                }
            }
        }
        let count = constraints.allowed_parameters.len() + constraints.denied_parameters.len();
        if count > PARAMETER_LIMIT {
            return Err(refuse("constraints", &format!("has {count} parameters, the limit is {PARAMETER_LIMIT}")));
        }
        Ok(constraints)
    }

    /// Writes the normal form: only what is set.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        if let Some(count) = self.max_invocations_per_hour {
            members.insert("max_invocations_per_hour".to_owned(), json!(count));
        }
        if let Some(cost) = self.max_cost_per_invocation {
            members.insert("max_cost_per_invocation".to_owned(), json!(cost.dollars()));
        }
        if !self.allowed_parameters.is_empty() {
            let mut rules = Map::new();
            for (path, rule) in &self.allowed_parameters {
                let short = !self.allowed_parameters.keys().any(|other| is_bound_of(other.as_str(), path.as_str()));
                write_rule(path.as_str(), rule, short, &mut rules);
            }
            members.insert("allowed_parameters".to_owned(), Value::Object(rules));
        }
        if !self.denied_parameters.is_empty() {
            let denials = self.denied_parameters.iter().map(|(path, denial)| (path.to_string(), write_denial(denial)));
            members.insert("denied_parameters".to_owned(), Value::Object(denials.collect()));
        }
        if let Some(networks) = &self.ip_allowlist {
            members.insert("ip_allowlist".to_owned(), networks.texts().collect());
        }
        if let Some(hosts) = &self.allowed_hosts {
            members.insert("allowed_hosts".to_owned(), hosts.texts().collect());
        }
        Value::Object(members)
    }
}

/// `amount_max` or `amount_min` with a number: the parameter, whether it is the upper bound, and the bound.
fn bound<'a>(name: &'a str, value: &Value) -> Option<(&'a str, bool, Number)> {
    let number = Number::from_json(value)?;
    match (name.strip_suffix("_max"), name.strip_suffix("_min")) {
        (Some(base), _) if !base.is_empty() => Some((base, true, number)),
        (_, Some(base)) if !base.is_empty() => Some((base, false, number)),
        _ => None,
    }
}

fn add_allowed(
    rules: &mut BTreeMap<ParameterPath, ParameterRule>,
    key: &str,
    value: &Value,
    path: &str,
) -> Result<(), ConstraintError> {
    let (name, rule) = match bound(key, value) {
        Some((name, true, max)) => (name, ParameterRule { max: Some(max), ..ParameterRule::default() }),
        Some((name, false, min)) => (name, ParameterRule { min: Some(min), ..ParameterRule::default() }),
        None => (key, rule(value, path)?),
    };
    let parameter = ParameterPath::parse(name).map_err(|error| refuse(path, &error.to_string()))?;
    let Some(known) = rules.get(&parameter) else {
        rules.insert(parameter, rule);
        return Ok(());
    };
    // Two rules on one parameter add up, unless they contradict each other in the same criterion.
    let clash = (known.max.is_some() && rule.max.is_some() && known.max != rule.max)
        || (known.min.is_some() && rule.min.is_some() && known.min != rule.min);
    if clash {
        return Err(refuse(path, &format!("conflicts with another constraint on `{parameter}`; state it once")));
    }
    let merged = known.meet(&rule);
    rules.insert(parameter, merged);
    Ok(())
}

fn rule(value: &Value, path: &str) -> Result<ParameterRule, ConstraintError> {
    let mut rule = ParameterRule::default();
    match value {
        Value::Array(values) => rule.values = Some(value_texts(values, path)?),
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}.{name}");
                let number = || Number::from_json(value).ok_or_else(|| refuse(&path, "must be a number"));
                match name.as_str() {
                    "values" => rule.values = Some(value_texts(array(value, &path)?, &path)?),
                    "max" => rule.max = Some(number()?),
                    "min" => rule.min = Some(number()?),
                    "pattern" => rule.patterns.extend([pattern(value, &path)?]),
                    "patterns" => rule.patterns.extend(patterns(value, &path)?),
                    "required" => {
                        rule.required = value.as_bool().ok_or_else(|| refuse(&path, "must be true or false"))?;
                    }
                    _ => {
                        return Err(refuse(&path, "is unknown; use values, min, max, pattern, patterns or required"));
                    }
                }
            }
            if rule == ParameterRule::default() {
                return Err(refuse(path, "is empty; set values, min, max, pattern or required"));
            }
        }
        _ => {
            let reason = "must be a list of values, a rule object, or a number under a name that ends in _max or _min";
            return Err(refuse(path, reason));
        }
    }
    Ok(rule)
}

fn denials(value: &Value, path: &str) -> Result<BTreeMap<ParameterPath, Denial>, ConstraintError> {
    let mut denials = BTreeMap::new();
    for (key, value) in object(value, path)? {
        let path = format!("{path}.{key}");
        let parameter = ParameterPath::parse(key).map_err(|error| refuse(&path, &error.to_string()))?;
        denials.insert(parameter, denial(value, &path)?);
    }
    Ok(denials)
}

fn denial(value: &Value, path: &str) -> Result<Denial, ConstraintError> {
    let mut denial = Denial::default();
    match value {
        Value::Array(values) => denial.values = denied_values(values, path)?,
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}.{name}");
                match name.as_str() {
                    "values" => denial.values = denied_values(array(value, &path)?, &path)?,
                    "pattern" => denial.patterns.extend([pattern(value, &path)?]),
                    "patterns" => denial.patterns.extend(patterns(value, &path)?),
                    "any" if value == &Value::Bool(true) => denial.any = true,
                    "any" => return Err(refuse(&path, "must be true or absent")),
                    _ => return Err(refuse(&path, "is unknown; use values, pattern, patterns or any")),
                }
            }
        }
        _ => {
            return Err(refuse(
                path,
                "must be a list of denied values, or an object with values, pattern, patterns or any",
            ));
        }
    }
    if denial == Denial::default() {
        return Err(refuse(path, "denies nothing; set at least one value, a pattern, or any: true"));
    }
    Ok(denial)
}

/// Whether a rule on `other` would have the name of the shorthand for a bound on `path`.
fn is_bound_of(other: &str, path: &str) -> bool {
    other.strip_prefix(path).is_some_and(|suffix| suffix == "_max" || suffix == "_min")
}

fn write_rule(path: &str, rule: &ParameterRule, short: bool, rules: &mut Map<String, Value>) {
    let values = rule.values.as_ref().map(|values| values.iter().map(read_text).collect::<Value>());
    if short && rule.patterns.is_empty() && !rule.required && values.is_none() {
        if let Some(max) = rule.max {
            rules.insert(format!("{path}_max"), max.to_json());
        }
        if let Some(min) = rule.min {
            rules.insert(format!("{path}_min"), min.to_json());
        }
        return;
    }
    if let (Some(values), None, None, true, false) =
        (&values, rule.min, rule.max, rule.patterns.is_empty(), rule.required)
    {
        rules.insert(path.to_owned(), values.clone());
        return;
    }
    let mut members = Map::new();
    if let Some(values) = values {
        members.insert("values".to_owned(), values);
    }
    if let Some(min) = rule.min {
        members.insert("min".to_owned(), min.to_json());
    }
    if let Some(max) = rule.max {
        members.insert("max".to_owned(), max.to_json());
    }
    if !rule.patterns.is_empty() {
        members.insert("patterns".to_owned(), rule.patterns.iter().map(Pattern::text).collect());
    }
    if rule.required {
        members.insert("required".to_owned(), Value::Bool(true));
    }
    rules.insert(path.to_owned(), Value::Object(members));
}

fn write_denial(denial: &Denial) -> Value {
    let values = denial.values.to_json();
    if !denial.any && denial.patterns.is_empty() {
        return values;
    }
    let mut members = Map::new();
    if denial.any {
        members.insert("any".to_owned(), Value::Bool(true));
    }
    if !denial.values.is_empty() {
        members.insert("values".to_owned(), values);
    }
    if !denial.patterns.is_empty() {
        members.insert("patterns".to_owned(), denial.patterns.iter().map(Pattern::text).collect());
    }
    Value::Object(members)
}

fn value_texts(values: &[Value], path: &str) -> Result<BTreeSet<ValueText>, ConstraintError> {
    check_count(values, path)?;
    Ok(values.iter().map(value_text).collect())
}

fn denied_values(values: &[Value], path: &str) -> Result<DeniedValues, ConstraintError> {
    check_count(values, path)?;
    Ok(DeniedValues::of(values))
}

fn pattern(value: &Value, path: &str) -> Result<Pattern, ConstraintError> {
    let text = value.as_str().ok_or_else(|| refuse(path, "must be a string"))?;
    Pattern::parse(text).map_err(|reason| refuse(path, &reason))
}

fn patterns(value: &Value, path: &str) -> Result<Vec<Pattern>, ConstraintError> {
    array(value, path)?.iter().map(|value| pattern(value, path)).collect()
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, ConstraintError> {
    value.as_object().ok_or_else(|| refuse(path, "must be an object"))
}

fn array<'a>(value: &'a Value, path: &str) -> Result<&'a Vec<Value>, ConstraintError> {
    let values = value.as_array().ok_or_else(|| refuse(path, "must be a list"))?;
    check_count(values, path)?;
    Ok(values)
}

fn texts<'a>(value: &'a Value, path: &str) -> Result<Vec<&'a str>, ConstraintError> {
    let values =
        array(value, path)?.iter().map(|value| value.as_str().ok_or_else(|| refuse(path, "must be a list of strings")));
    values.collect()
}

fn check_count(values: &[Value], path: &str) -> Result<(), ConstraintError> {
    if values.len() > LIST_LIMIT {
        return Err(refuse(path, &format!("has {} entries, the limit is {LIST_LIMIT}", values.len())));
    }
    Ok(())
}

fn refuse(path: &str, reason: &str) -> ConstraintError {
    ConstraintError { path: path.to_owned(), reason: reason.to_owned() }
}
