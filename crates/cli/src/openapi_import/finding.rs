//! What an import could not carry over, changed on the way or leaves for a person to decide. Everything that an OpenAPI
//! document says is either in the definition or here, by its kind and its place in the document.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// What a finding means for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// The document says it and the definition does not.
    Dropped,
    /// The definition says it in another way.
    Changed,
    /// A person should look at it.
    Confirm,
}

macro_rules! kinds {
    ($($weight:ident { $($kind:ident = $word:literal: $meaning:literal,)+ })+) => {
        /// The kinds of findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Kind { $($(#[doc = $meaning] $kind,)+)+ }

        impl Kind {
            /// As reports write it.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $($(Self::$kind => $word,)+)+ }
            }

            /// What it says, for people.
            pub(crate) fn meaning(self) -> &'static str {
                match self { $($(Self::$kind => $meaning,)+)+ }
            }

            /// What it means for the reader.
            pub(crate) fn weight(self) -> Weight {
                match self { $($(Self::$kind => Weight::$weight,)+)+ }
            }
        }
    };
}

kinds! {
    Dropped {
        Operation = "operation": "operations that did not become a tool",
        PathItem = "path-item": "path items that could not be read",
        Parameter = "parameter": "parameters that no request could carry",
        ParameterOption = "parameter-option": "options of parameters that nothing here knows",
        MediaType = "media-type": "media types of request bodies that were not taken",
        Encoding = "encoding": "rules for the encoding of body members",
        BodyKeyword = "body-keyword": "what a request body says about itself as a whole",
        BodyAlternative = "body-alternative": "alternatives of a request body, or members of one, that were not taken",
        Body = "body": "request bodies that were left out",
        SchemaKeyword = "schema-keyword": "keywords of schemas that would not be enforced, or have no valid value",
        Pattern = "pattern": "patterns that cannot run in linear time",
        Reference = "reference": "references that lead out of the document or nowhere; anything passes there",
        ReferenceSibling = "reference-sibling": "members beside a reference, which OpenAPI ignores there",
        ReadOnly = "read-only": "members that only responses have; no request may carry them",
        ErrorResponse = "error-response": "answers other than successes",
        OtherResponse = "other-response": "further answers of success",
        ResponseMediaType = "response-media-type": "media types of answers that are not JSON, or not the first",
        ResponseSchema = "response-schema": "schemas of answers that were left out",
        ResponseHeader = "response-header": "headers of answers",
        ResponseDescription = "response-description": "descriptions of answers that have no schema, or one with a description",
        Link = "link": "links between operations",
        Callback = "callback": "callbacks",
        Webhook = "webhook": "webhooks",
        Server = "server": "servers that were not chosen or cannot be used",
        SecurityScheme = "security-scheme": "ways to authenticate that no credential can be made for",
        Example = "example": "examples of media types and parameters that were not taken into a schema",
        Extension = "extension": "extensions, `x-...`",
        Information = "information": "what is said about the document, its servers and its flows of authorization",
        Tag = "tag": "descriptions of tags, and tags of operations that did not become a scope",
        ComponentUnused = "component-unused": "components that no tool needs",
        UnknownMember = "unknown-member": "members that OpenAPI does not have there",
    }
    Changed {
        NameRewritten = "name-rewritten": "operation ids that were made to fit the name of a tool",
        NameCollision = "name-collision": "operations of one name, each with a suffix made of its method and path",
        ParameterRenamed = "parameter-renamed": "parameters that share their name with another one of the operation",
        ParameterAdded = "parameter-added": "parts of a path that the document does not describe",
        ParameterAsText = "parameter-as-text": "objects and media types that the caller writes as one text, without the limits of their members",
        ParameterExpanded = "parameter-expanded": "objects in the query whose members became parameters",
        CredentialParameter = "credential-parameter": "parameters that the credential fills",
        MediaTypeAssumed = "media-type-assumed": "bodies of any media type, which are sent as JSON",
        FormBrackets = "form-brackets": "lists and objects in forms, which are sent with brackets after their names",
        BodyAlternatives = "body-alternatives": "alternative bodies, whose members all became optional parameters",
        BodyRequired = "body-required": "optional bodies with required members, which are required now",
        BodyClosed = "body-closed": "bodies of several parts, one of which admits no further members: none has any",
        RequiredOneWay = "required-one-way": "members that are required only in the other direction",
        FormatRemark = "format-remark": "formats that are not checked, kept as `x-format`",
        ServerVariable = "server-variable": "variables of a server and schemes left open, replaced by their default",
        ScopeRewritten = "scope-rewritten": "scopes that were made to fit the name of a scope",
        Deprecated = "deprecated": "deprecated operations, which say so in their description",
        Text = "text": "texts that were shortened or had characters that are not shown",
    }
    Confirm {
        ScopeChoice = "scope-choice": "operations that need several scopes, or one of several: the tool has the first",
        CredentialChoice = "credential-choice": "operations that need several credentials at once, and get one",
        CredentialNotNeeded = "credential-not-needed": "operations that the document opens to everybody",
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// What kind of thing it is.
    pub(crate) kind: Kind,
    /// Where it stands in the document: a JSON pointer.
    pub(crate) pointer: String,
    /// What exactly, or why.
    pub(crate) note: String,
}

/// All findings of an import, each once: a component that many operations use is not told of again and again.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeSet<Finding>);

impl Findings {
    /// Writes one down.
    pub(crate) fn add(&mut self, kind: Kind, pointer: &str, note: impl Into<String>) {
        self.0.insert(Finding { kind, pointer: pointer.to_owned(), note: note.into() });
    }

    /// By kind, then by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// How many there are of a kind.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.0.iter().filter(|finding| finding.kind == kind).count()
    }

    /// How many there are of each kind.
    pub(crate) fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for finding in &self.0 {
            *counts.entry(finding.kind).or_insert(0) += 1;
        }
        counts
    }

    /// The counts and the whole list, for programs.
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
    /// As reports write it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Changed => "changed",
            Self::Confirm => "confirm",
        }
    }
}
