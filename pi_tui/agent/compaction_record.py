"""How the compactions of a session went: the facts for `/session` and for later.

What succeeded is told by its entry. A failure leaves a `custom` entry that is never sent, so that
"failed" and "never ran" can be told apart; a cancelled one leaves nothing and is known only to the
run it happened in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct, to_builtins

from pi_tui.core.entries import CompactionEntry, CustomEntry, Entry
from pi_tui.core.messages import JSON, Usage, usage_from_data

FAILED_TYPE = "pi-tui.compaction-failed"

RECORDED_TYPES = frozenset({"compaction", "custom"})
"""Types of the entries that may tell of a compaction."""

Ending: TypeAlias = Literal["done", "failed", "cancelled"]


class CompactionRecord(Struct, frozen=True):
    """One compaction. `reason` is "" where an entry does not tell it; tokens are estimates."""

    timestamp: str
    ending: Ending
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int | None = None
    first_kept_entry_id: str = ""
    parts: int = 0
    retries: int = 0
    duration_ms: int = 0
    usage: Usage | None = None
    model: str = ""
    from_hook: bool = False
    message: str = ""

    @property
    def cost(self) -> float:
        """Dollars."""
        return self.usage.cost.total if self.usage is not None else 0.0


def failure_data(record: CompactionRecord) -> JSON:
    """What the entry of a failure holds."""
    data: dict[str, JSON] = {
        "reason": record.reason,
        "message": record.message,
        "tokensBefore": record.tokens_before,
        "parts": record.parts,
        "retries": record.retries,
        "durationMs": record.duration_ms,
    }
    if record.model:
        data["model"] = record.model
    if record.usage is not None and record.usage.sum_tokens:
        data["usage"] = to_builtins(record.usage)
    return data


def record_of(entry: Entry) -> CompactionRecord | None:
    """The compaction an entry tells of, if it does."""
    if isinstance(entry, CompactionEntry):
        data = entry.details if isinstance(entry.details, dict) else {}
        return CompactionRecord(
            timestamp=entry.timestamp,
            ending="done",
            reason=_text(data, "reason"),
            tokens_before=entry.tokens_before,
            tokens_after=_number(data, "estimatedTokensAfter"),
            first_kept_entry_id=entry.first_kept_entry_id or "",
            parts=_count(data, "parts"),
            retries=_count(data, "retries"),
            duration_ms=_count(data, "durationMs"),
            usage=entry.usage,
            model=_text(data, "model"),
            from_hook=entry.from_hook,
        )
    if isinstance(entry, CustomEntry) and entry.custom_type == FAILED_TYPE:
        data = entry.data if isinstance(entry.data, dict) else {}
        return CompactionRecord(
            timestamp=entry.timestamp,
            ending="failed",
            reason=_text(data, "reason"),
            tokens_before=_count(data, "tokensBefore"),
            parts=_count(data, "parts"),
            retries=_count(data, "retries"),
            duration_ms=_count(data, "durationMs"),
            usage=usage_from_data(data.get("usage")),
            model=_text(data, "model"),
            message=_text(data, "message"),
        )
    return None


def in_order_of_time(records: Iterable[CompactionRecord]) -> tuple[CompactionRecord, ...]:
    """Sort records, oldest first."""
    return tuple(sorted(records, key=lambda record: record.timestamp))


def _text(data: dict[str, JSON], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _number(data: dict[str, JSON], key: str) -> int | None:
    value = data.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _count(data: dict[str, JSON], key: str) -> int:
    return _number(data, key) or 0
