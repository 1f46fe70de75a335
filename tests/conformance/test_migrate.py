"""Old versions of the format."""

import json

from pi_tui.storage.migration import migrate

GROUP = "migrate"


def test_migrate(case, expected):
    lines = case["input"]["lines"]
    before = json.dumps(lines)
    count = iter(range(1, 10_000))
    migrated, entries = migrate(lines, lambda: f"#{next(count)}")
    assert migrated == expected["migrated"]
    assert [without_empty(e) for e in entries] == [without_empty(e) for e in expected["entries"]]
    assert json.dumps(lines) == before


def without_empty(entry):
    """A null `firstKeptEntryId` means that the field has no value."""
    return {k: v for k, v in entry.items() if not (k == "firstKeptEntryId" and v is None)}
