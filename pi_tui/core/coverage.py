"""Which messages of a path the model knows only through the newest summary, for people to see.

Everything before the first kept entry of the newest compaction is covered, but for what is pinned.
It is found from the heads of the path: what is covered need not be decoded. `with_covered` marks
it in a transcript. Older compactions lie within the covered part and are nothing special there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from pi_tui.core.entries import CompactionEntry, Entry, EntryHead
from pi_tui.core.pins import pin_targets, with_pin_partners
from pi_tui.core.transcript import CoveredBlock, CoveredEndBlock

SCREEN_NOTICE = "notice:"
"""Keys of lines that belong to the screen and not to the path begin with this."""


class Keyed(Protocol):
    """A block, or what stands for blocks; the key begins with the id of an entry."""

    @property
    def key(self) -> str: ...


K = TypeVar("K", bound=Keyed)


class CoveredRun(Struct, frozen=True):
    """Covered entries that follow each other on the path; `messages` counts what was said."""

    first_id: str
    messages: int


class Coverage(Struct, frozen=True):
    """The covered runs of a path, root to leaf, and the run each covered entry belongs to."""

    runs: tuple[CoveredRun, ...] = ()
    run_of_entry: Mapping[str, int] = {}

    def run_of(self, block_key: str) -> int | None:
        """The run of the entry a block comes from; None when the model still has it."""
        found = self.run_of_entry.get(block_key)
        if found is None:
            found = self.run_of_entry.get(block_key.rpartition(":")[0])
        return found


NOTHING_COVERED = Coverage()


def coverage_of(heads: Sequence[EntryHead], entry_of: Callable[[str], Entry]) -> Coverage:
    """Find what is covered; `heads` are those of a path, root to leaf.

    Decodes the newest compaction and what may be pins. Raises what `entry_of` raises.
    """
    newest = next((i for i in reversed(range(len(heads))) if heads[i].type == "compaction"), None)
    if newest is None:
        return NOTHING_COVERED
    compaction = entry_of(heads[newest].id)
    kept = newest
    if isinstance(compaction, CompactionEntry) and compaction.first_kept_entry_id:
        wanted = compaction.first_kept_entry_id
        kept = next((i for i in range(newest) if heads[i].id == wanted), newest)
    targets = pin_targets(entry_of(head.id) for head in heads if head.type == "custom")
    pinned = with_pin_partners(heads[:kept], targets) if targets else set()
    return _runs(heads[:kept], pinned)


def _runs(heads: Sequence[EntryHead], pinned: set[int]) -> Coverage:
    firsts: list[str] = []
    counts: list[int] = []
    run_of_entry: dict[str, int] = {}
    broken = True
    for i, head in enumerate(heads):
        if i in pinned:
            broken = True
            continue
        if not is_shown(head):
            continue
        if broken:
            broken = False
            firsts.append(head.id)
            counts.append(0)
        counts[-1] += _is_message(head)
        run_of_entry[head.id] = len(firsts) - 1
    return Coverage(tuple(map(CoveredRun, firsts, counts)), run_of_entry)


def is_shown(head: EntryHead) -> bool:
    """True for an entry that may have blocks in a transcript."""
    return _is_message(head) or head.type == "compaction"


def _is_message(head: EntryHead) -> bool:
    if head.type == "message":
        return head.role != "system"
    return head.type in ("custom_message", "branch_summary")


def with_covered(
    blocks: Iterable[K], coverage: Coverage
) -> list[K | CoveredBlock | CoveredEndBlock]:
    """Put marks around the covered blocks of a transcript, or of the end of one."""
    if not coverage.runs:
        return list(blocks)
    shown: list[K | CoveredBlock | CoveredEndBlock] = []
    inside: list[K] = []
    aside: list[K] = []  # lines of the screen: part of a run when it goes on behind them
    at: int | None = None

    def close() -> None:
        if at is not None:
            run = coverage.runs[at]
            head = CoveredBlock(f"covered:{run.first_id}", run.messages, len(inside) + 1)
            end = CoveredEndBlock(f"covered-end:{run.first_id}", run.messages)
            shown.extend((head, *inside, end))
        shown.extend(aside)
        inside.clear()
        aside.clear()

    for block in blocks:
        run = coverage.run_of(block.key)
        if run is None and at is not None and block.key.startswith(SCREEN_NOTICE):
            aside.append(block)
            continue
        if run != at:
            close()
            at = run
        if run is None:
            shown.append(block)
        else:
            inside += [*aside, block]
            aside.clear()
    close()
    return shown
