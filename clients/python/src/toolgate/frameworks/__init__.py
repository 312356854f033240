"""Tools in the shapes of model APIs and agent frameworks."""

from __future__ import annotations

from typing import Literal

from .adapter import Adapter

Framework = Literal["openai", "openai-responses", "anthropic", "langchain", "pydantic-ai"]


def adapter_of(framework: Framework) -> Adapter:
    """Frameworks are imported only if they are asked for."""
    if framework == "openai":
        from .openai import ChatCompletions

        return ChatCompletions()
    if framework == "openai-responses":
        from .openai import Responses

        return Responses()
    if framework == "anthropic":
        from .anthropic import Messages

        return Messages()
    if framework == "langchain":
        from .langchain import LangChain

        return LangChain()
    if framework == "pydantic-ai":
        from .pydantic_ai import PydanticAI

        return PydanticAI()
    raise ValueError(f"no framework {framework!r}: take openai, openai-responses, anthropic, langchain or pydantic-ai")


__all__ = ["Adapter", "Framework", "adapter_of"]
