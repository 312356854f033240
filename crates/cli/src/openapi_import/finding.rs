//! Findings of an import: what was omitted, changed, or needs review, by kind and position in the document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    Dropped,
    Changed,
    Confirm,
}

macro_rules! kinds {
    ($($weight:ident { $($kind:ident = $word:literal: $meaning:literal,)+ })+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind { $($(#[doc = $meaning] $kind,)+)+ }

        impl Kind {
            pub(crate) fn as_str(self) -> &'static str {
                match self { $($(Self::$kind => $word,)+)+ }
            }

            pub(crate) fn meaning(self) -> &'static str {
                match self { $($(Self::$kind => $meaning,)+)+ }
            }

            pub(crate) fn weight(self) -> Weight {
                match self { $($(Self::$kind => Weight::$weight,)+)+ }
            }
        }
    };
}

kinds! {
    Dropped {
        Operation = "operation": "operations without a tool",
        PathItem = "path-item": "invalid path items",
        Parameter = "parameter": "parameters that cannot be sent",
        ParameterOption = "parameter-option": "unsupported options of parameters",
        MediaType = "media-type": "media types of request bodies that were not used",
        Encoding = "encoding": "encodings of body members",
        BodyKeyword = "body-keyword": "keywords of request bodies as a whole",
        BodyAlternative = "body-alternative": "alternatives of request bodies, or their members, that were not used",
        Body = "body": "request bodies that were omitted",
        SchemaKeyword = "schema-keyword": "schema keywords that would not be enforced, or are invalid",
        Pattern = "pattern": "patterns that cannot be evaluated in linear time",
        Reference = "reference": "references to other documents, or to nothing; any value is accepted there",
        ReferenceSibling = "reference-sibling": "members beside a reference, which OpenAPI ignores there",
        ReadOnly = "read-only": "read-only members, which are not accepted in requests",
        ErrorResponse = "error-response": "error responses",
        OtherResponse = "other-response": "further success responses",
        ResponseMediaType = "response-media-type": "media types of responses other than the first JSON one",
        ResponseSchema = "response-schema": "schemas of responses that were omitted",
        ResponseHeader = "response-header": "headers of responses",
        ResponseDescription = "response-description": "descriptions of responses without a schema, or with a description in the schema",
        Link = "link": "links between operations",
        Callback = "callback": "callbacks",
        Webhook = "webhook": "webhooks",
        Server = "server": "servers that were not used",
        SecurityScheme = "security-scheme": "security schemes without a matching auth type",
        Example = "example": "examples of media types and parameters that are not in a schema",
        Extension = "extension": "extensions, `x-...`",
        Information = "information": "information about the document, its servers and authorization flows",
        Tag = "tag": "descriptions of tags, and tags that did not become a scope",
        ComponentUnused = "component-unused": "components that no tool uses",
        UnknownMember = "unknown-member": "members that OpenAPI does not define",
    }
    Changed {
        NameRewritten = "name-rewritten": "operation ids that were converted to tool names",
        NameCollision = "name-collision": "operations with the same name, each with a suffix from its method and path",
        ParameterRenamed = "parameter-renamed": "parameters with the same name as another parameter of the operation",
        ParameterAdded = "parameter-added": "path parameters that the document does not describe",
        ParameterAsText = "parameter-as-text": "objects and media types that are passed as text, without the constraints of their members",
        ParameterExpanded = "parameter-expanded": "query objects whose members became parameters",
        CredentialParameter = "credential-parameter": "parameters that contain the credential",
        MediaTypeAssumed = "media-type-assumed": "bodies of any media type, sent as JSON",
        FormBrackets = "form-brackets": "lists and objects in forms, sent with brackets after their names",
        BodyAlternatives = "body-alternatives": "alternative bodies, whose members all became optional parameters",
        BodyRequired = "body-required": "optional bodies with required members, which are now required",
        BodyClosed = "body-closed": "bodies of several parts, one of which is closed: the whole body is closed",
        RequiredOneWay = "required-one-way": "members that are required only in requests, or only in responses",
        FormatRemark = "format-remark": "formats that are not checked, kept as `x-format`",
        ServerVariable = "server-variable": "server variables and schemes, replaced by their defaults",
        ScopeRewritten = "scope-rewritten": "scopes that were converted to valid names",
        Deprecated = "deprecated": "deprecated operations, marked in their description",
        Text = "text": "texts that were shortened, or contained invisible characters",
    }
    Confirm {
        ScopeChoice = "scope-choice": "operations with several scopes: the tool has the first",
        CredentialChoice = "credential-choice": "operations that require several credentials at once: the tool has one",
        CredentialNotNeeded = "credential-not-needed": "operations without authentication",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// A JSON pointer.
    pub(crate) pointer: String,
    pub(crate) note: String,
}

/// Findings without duplicates: a component that many operations use is reported once.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeSet<Finding>);

impl Findings {
    pub(crate) fn add(&mut self, kind: Kind, pointer: &str, note: impl Into<String>) {
        self.0.insert(Finding { kind, pointer: pointer.to_owned(), note: note.into() });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.0.iter().filter(|finding| finding.kind == kind).count()
    }

    pub(crate) fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for finding in &self.0 {
            *counts.entry(finding.kind).or_insert(0) += 1;
        }
        counts
    }

    pub(crate) fn to_json(&self) -> (Value, Value) {
        let counts: Map<String, Value> =
            self.counts().into_iter().map(|(kind, count)| (kind.as_str().to_owned(), json!(count))).collect();
        let one = |finding: &Finding| {
            json!({"kind": finding.kind.as_str(), "weight": finding.kind.weight().as_str(),
                "pointer": finding.pointer, "note": finding.note})
        };
        (Value::Object(counts), self.0.iter().map(one).collect())
    }
}

impl Weight {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Changed => "changed",
            Self::Confirm => "confirm",
        }
    }
}
