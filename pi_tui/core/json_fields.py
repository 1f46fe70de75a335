"""Fields of decoded JSON that may hold anything: read as what is expected, or as nothing.

Stored sessions come from other programs too, so nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType

JSON: TypeAlias = Any
"""A decoded JSON value: None, bool, int, float, str, list or dict."""


def text_or_empty(value: JSON) -> str:
    """The value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def text_field(data: Mapping[str, JSON], key: str) -> str:
    """A text; "" for anything else."""
    return text_or_empty(data.get(key))


def optional_text(data: Mapping[str, JSON], key: str) -> str | UnsetType:
    """A text; UNSET for anything else."""
    value = data.get(key)
    return value if isinstance(value, str) else UNSET


def count_field(data: Mapping[str, JSON], key: str) -> int | None:
    """A whole number, also one written with a fraction; None for anything else."""
    value = data.get(key)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value == value and abs(value) < 2**63:
        return int(value)
    return None


def number_field(data: Mapping[str, JSON], key: str) -> float:
    """A number; 0 for anything else."""
    value = data.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def timestamp_field(data: Mapping[str, JSON]) -> int:
    """The field `timestamp` in Unix milliseconds; 0 when it is none."""
    return count_field(data, "timestamp") or 0
