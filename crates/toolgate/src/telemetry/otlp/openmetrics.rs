//! Parses the text of `/metrics`. The export uses the same text that Prometheus reads, so that both show the same
//! metrics, and no instrument is registered twice.

/// All samples of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricFamily {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) help: String,
    pub(super) samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    /// The end of the name, behind that of the family: `total`, `sum`, `count`, `bucket`, or nothing.
    pub(super) suffix: String,
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: f64,
}

/// Reads OpenMetrics text. Lines that are something else are skipped.
pub(super) fn read(text: &str) -> Vec<MetricFamily> {
    let mut families: Vec<MetricFamily> = Vec::new();
    let mut help = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map(|(_, help)| help.trim_end_matches('.').to_owned()).unwrap_or_default();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let kind = match kind {
                "counter" => Kind::Counter,
                "histogram" => Kind::Histogram,
                _ => Kind::Gauge,
            };
            let help = std::mem::take(&mut help);
            families.push(MetricFamily { name: name.to_owned(), kind, help, samples: Vec::new() });
        } else if let Some(family) = families.last_mut()
            && let Some(sample) = read_sample(line, &family.name)
        {
            family.samples.push(sample);
        }
    }
    families
}

/// `name_suffix{label="value",...} number`
fn read_sample(line: &str, family: &str) -> Option<Sample> {
    let rest = line.strip_prefix(family)?;
    let end = rest.find(['{', ' '])?;
    let (suffix, rest) = rest.split_at_checked(end)?;
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => read_labels(rest)?,
        None => (Vec::new(), rest),
    };
    let suffix = suffix.trim_start_matches('_').to_owned();
    Some(Sample { suffix, labels, value: value.split_whitespace().next()?.parse().ok()? })
}

type Labels = Vec<(String, String)>;

/// The labels up to the closing brace, and the rest.
fn read_labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, quoted) = rest.split_once("=\"")?;
        let (value, behind) = read_quoted(quoted)?;
        labels.push((key.to_owned(), value));
        rest = behind;
    }
}

/// The text up to the closing quote, unescaped, and the rest.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(position + 1..)?)),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_read_with_their_samples() {
        let text = "# HELP calls Calls, of tools.\n# TYPE calls counter\n\
                    calls_total{outcome=\"a \\\"b\\\"\\\\c\\nd\",code=\"\"} 3\n\
                    # HELP size Size.\n# TYPE size gauge\nsize 1.5e3\n# EOF\n";
        let families = read(text);
        assert_eq!(families.len(), 2);
        assert_eq!(
            (families[0].name.as_str(), families[0].kind, families[0].help.as_str()),
            ("calls", Kind::Counter, "Calls, of tools")
        );
        let labels = vec![("outcome".to_owned(), "a \"b\"\\c\nd".to_owned()), ("code".to_owned(), String::new())];
        assert_eq!(families[0].samples, [Sample { suffix: "total".to_owned(), labels, value: 3.0 }]);
        assert_eq!(families[1].samples, [Sample { suffix: String::new(), labels: Vec::new(), value: 1500.0 }]);
    }

    #[test]
    fn a_bucket_without_a_bound_is_infinite() {
        let text = "# TYPE a histogram\na_bucket{le=\"+Inf\"} 2\n";
        assert_eq!(read(text)[0].samples[0].labels[0].1.parse::<f64>().unwrap(), f64::INFINITY);
    }

    #[test]
    fn what_is_cut_off_is_skipped() {
        for line in ["a_total{x=\"1", "a_total{x=", "a_total", "a_total{x=\"1\"}", "b 1", ""] {
            assert_eq!(read(&format!("# TYPE a counter\n{line}\n"))[0].samples, [], "{line}");
        }
    }
}
