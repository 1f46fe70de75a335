"""What a command found out, as a text for people and as data for programs.

Front ends for people take the text alone; one that speaks JSON takes both. Data are JSON values
with camelCase names, as everywhere in the JSON stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import UNSET, Struct

from pi_tui.commands.ui import CommandUI
from pi_tui.core.messages import JSON


@runtime_checkable
class ShowsFacts(Protocol):
    """What a front end for programs offers besides `CommandUI`."""

    def show_facts(self, title: str, text: str, facts: JSON) -> None:
        """Show the text together with the facts it tells."""
        ...


def show(ui: CommandUI, title: str, text: str, facts: object) -> None:
    """Show a text; `facts` is what it tells, as structs, mappings, sequences and plain values."""
    if isinstance(ui, ShowsFacts):
        ui.show_facts(title, text, as_data(facts))
    else:
        ui.show(title, text)


def as_data(value: object) -> JSON:
    """Structs as objects with camelCase names; the keys of mappings stay as they are."""
    if isinstance(value, Struct):
        named = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {
            _camel(name): as_data(given)
            for name, field in named
            if (given := getattr(value, field)) is not UNSET
        }
    if isinstance(value, Mapping):
        return {str(key): as_data(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_data(one) for one in value]
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
