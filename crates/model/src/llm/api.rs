//! The APIs of model providers.

/// One of the APIs that models are called through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    Chat,
    CountTokens,
    Embeddings,
    InputTokens,
    Messages,
    Responses,
}

/// Whose conventions an API follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Anthropic,
    OpenAi,
}

impl Api {
    /// The names in definitions, which are also those of the tools.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("chat", Self::Chat),
        ("count_tokens", Self::CountTokens),
        ("embeddings", Self::Embeddings),
        ("input_tokens", Self::InputTokens),
        ("messages", Self::Messages),
        ("responses", Self::Responses),
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::CountTokens => "count_tokens",
            Self::Embeddings => "embeddings",
            Self::InputTokens => "input_tokens",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    pub fn vendor(self) -> Vendor {
        match self {
            Self::CountTokens | Self::Messages => Vendor::Anthropic,
            Self::Chat | Self::Embeddings | Self::InputTokens | Self::Responses => Vendor::OpenAi,
        }
    }

    /// The path of the API, behind the version.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::CountTokens => "/messages/count_tokens",
            Self::Embeddings => "/embeddings",
            Self::InputTokens => "/responses/input_tokens",
            Self::Messages => "/messages",
            Self::Responses => "/responses",
        }
    }

    /// Whether a model writes an answer.
    pub fn generates(self) -> bool {
        matches!(self, Self::Chat | Self::Messages | Self::Responses)
    }

    /// Whether a call costs nothing: it only counts.
    pub fn is_free(self) -> bool {
        matches!(self, Self::CountTokens | Self::InputTokens)
    }

    /// The members of a request that bound the answer; the first one is what is written where none is given.
    pub fn caps(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &["max_completion_tokens", "max_tokens"],
            Self::Messages => &["max_tokens"],
            Self::Responses => &["max_output_tokens"],
            Self::CountTokens | Self::Embeddings | Self::InputTokens => &[],
        }
    }

    /// The members of requests that are understood. What is not among them might switch on what nobody has looked at.
    pub(crate) fn members(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &[
                "audio",
                "frequency_penalty",
                "function_call",
                "functions",
                "logit_bias",
                "logprobs",
                "max_completion_tokens",
                "max_tokens",
                "messages",
                "metadata",
                "modalities",
                "model",
                "n",
                "parallel_tool_calls",
                "prediction",
                "presence_penalty",
                "prompt_cache_key",
                "prompt_cache_options",
                "prompt_cache_retention",
                "reasoning_effort",
                "response_format",
                "safety_identifier",
                "seed",
                "service_tier",
                "stop",
                "store",
                "stream",
                "stream_options",
                "temperature",
                "tool_choice",
                "tools",
                "top_logprobs",
                "top_p",
                "user",
                "verbosity",
                "web_search_options",
            ],
            Self::CountTokens => {
                &["cache_control", "messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"]
            }
            Self::Embeddings => &["dimensions", "encoding_format", "input", "model", "user"],
            Self::InputTokens => &[
                "input",
                "instructions",
                "model",
                "parallel_tool_calls",
                "personality",
                "reasoning",
                "text",
                "tool_choice",
                "tools",
                "truncation",
            ],
            Self::Messages => &[
                "cache_control",
                "max_tokens",
                "messages",
                "metadata",
                "model",
                "output_config",
                "service_tier",
                "stop_sequences",
                "stream",
                "system",
                "temperature",
                "thinking",
                "tool_choice",
                "tools",
                "top_k",
                "top_p",
            ],
            Self::Responses => &[
                "background",
                "include",
                "input",
                "instructions",
                "max_output_tokens",
                "max_tool_calls",
                "metadata",
                "model",
                "parallel_tool_calls",
                "prompt_cache_key",
                "prompt_cache_options",
                "prompt_cache_retention",
                "reasoning",
                "safety_identifier",
                "service_tier",
                "store",
                "stream",
                "stream_options",
                "temperature",
                "text",
                "tool_choice",
                "tools",
                "top_logprobs",
                "top_p",
                "truncation",
                "user",
            ],
        }
    }
}
