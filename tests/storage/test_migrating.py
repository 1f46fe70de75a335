"""Versions 1 and 2 become version 3, on parsed lines."""

from __future__ import annotations

from itertools import count

import pytest

from pi_tui.storage.migration import migrate


def numbered() -> object:
    numbers = count(1)
    return lambda: f"#{next(numbers)}"


@pytest.mark.parametrize(
    ("index", "kept"),
    [(0, None), (1, "#1"), (2, "#2"), (3, "#3"), (4, None), (-1, None), (99, None), (1.0, "#1"),
     (1.5, None)],
)  # fmt: skip
def test_the_first_kept_entry_by_place(index: float, kept: str | None) -> None:
    lines = [
        {"type": "session", "id": "s"},
        {"type": "message", "id": "own", "message": {"role": "user"}},
        {"type": "custom"},
        {"type": "compaction", "firstKeptEntryIndex": index},
        {"type": "message"},
    ]
    migrated, after = migrate(lines, numbered())  # type: ignore[arg-type]
    assert migrated
    assert after[0] == {"type": "session", "id": "s", "version": 3}
    assert [line.get("parentId") for line in after[1:]] == [None, "#1", "#2", "#3"]
    assert [line["id"] for line in after[1:]] == ["#1", "#2", "#3", "#4"]
    assert "firstKeptEntryIndex" not in after[3]
    assert after[3].get("firstKeptEntryId") == kept
    assert lines[1]["id"] == "own"


def test_taken_ids_are_asked_for_again() -> None:
    ids = iter(["a", "a", "b"])
    lines = [{"type": "session", "id": "s"}, {"type": "custom"}, {"type": "custom"}]
    _, after = migrate(lines, lambda: next(ids))
    assert [line["id"] for line in after[1:]] == ["a", "b"]


@pytest.mark.parametrize(
    ("version", "role", "migrated"),
    [(2, "custom", True), (3, "hookMessage", False), (4, "hookMessage", False),
     ("2", "custom", True), ("x", "hookMessage", False)],
)  # fmt: skip
def test_messages_of_hooks(version: object, role: str, migrated: bool) -> None:
    lines = [
        {"type": "session", "id": "s", "version": version},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "hookMessage"}},
    ]
    done, after = migrate(lines, numbered())  # type: ignore[arg-type]
    assert done is migrated
    assert after[1]["message"]["role"] == role
    assert after[1]["id"] == "a"
    assert lines[1]["message"] == {"role": "hookMessage"}
