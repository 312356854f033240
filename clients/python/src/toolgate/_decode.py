"""Reads JSON into the dataclasses of this package: their annotations are the only description of the shapes. Members
that a class does not have are ignored, so that a later gate can add some."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .exceptions import ResponseError

T = TypeVar("T")


def decode(kind: type[T], value: Any) -> T:
    """A value of this class; `ResponseError` if the JSON does not fit."""
    try:
        read: T = _read(kind, value)
    except (KeyError, TypeError, ValueError) as error:
        raise ResponseError(
            f"a response that is no {kind.__name__}: {error!r}; check the version of the gate"
        ) from error
    return read


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = (choice for choice in get_args(kind) if choice is not types.NoneType)
        return _read(kind, value)
    if origin is Literal or kind is Any:
        return value
    if origin is tuple:
        return tuple(_read(get_args(kind)[0], item) for item in _expect(list, value))
    if origin is not None:
        return _expect(dict, value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind is Decimal:
        # JSON numbers of the gate have at most six decimals, which the shortest form of a float keeps.
        return Decimal(str(value))
    if dataclasses.is_dataclass(kind):
        return _read_members(kind, _expect(dict, value))
    return _expect(kind, value)


def _read_members(kind: Any, value: Mapping[str, Any]) -> Any:
    members = {}
    for name, annotation, required in _members(kind):
        if name in value:
            members[name] = _read(annotation, value[name])
        elif required:
            raise KeyError(name)
    return kind(**members)


@cache
def _members(kind: Any) -> list[tuple[str, Any, bool]]:
    annotations = get_type_hints(kind)
    has_none = (dataclasses.MISSING, dataclasses.MISSING)
    return [
        (field.name, annotations[field.name], (field.default, field.default_factory) == has_none)
        for field in dataclasses.fields(kind)
        if field.init
    ]


def _expect(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r:.80} is no {kind.__name__}")
    return value
