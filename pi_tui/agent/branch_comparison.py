"""Compares two branches: what they share, and what each did after that.

Pure reading of the tree. Texts are foreign and raw; front ends sanitise them where they draw.
Tokens are estimates, costs US dollars as the answers reported them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from pi_tui.core.compaction.files import FileLists, FileOps
from pi_tui.core.entries import BranchSummaryEntry, CompactionEntry, Entry
from pi_tui.core.messages import AssistantMessage, Message, UserMessage, text_of
from pi_tui.core.projection import messages_of
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import sent_tokens
from pi_tui.core.tree import SessionTree


class BranchSide(Struct, frozen=True):
    """One branch from the common ancestor to its end, the ancestor left out.

    `tool_calls`: name and number of calls, most called first. `last_answer`: the text of the newest
    answer, "" when there is none. `started`, `ended`: ISO timestamps, "" without entries.
    """

    end_id: str
    entries: int
    prompts: tuple[str, ...]
    answers: int
    tool_calls: tuple[tuple[str, int], ...]
    files: FileLists
    tokens: int
    cost: float
    last_answer: str
    started: str
    ended: str


class BranchComparison(Struct, frozen=True):
    """Two branches side by side. `changed_by_both`: files that each of them changed.

    `ancestor_id` None: they share nothing. `shared_entries` counts the path to the ancestor.
    """

    ancestor_id: str | None
    shared_entries: int
    a: BranchSide
    b: BranchSide
    changed_by_both: tuple[str, ...]


def compare_branches(
    tree: SessionTree, a_id: str, b_id: str, estimator: TokenEstimator
) -> BranchComparison:
    """Compare the paths to two entries; decodes only what they do not share."""
    ancestor = tree.common_ancestor(a_id, b_id)
    shared = 0 if ancestor is None else len(tree.path_ids(ancestor))
    a = _side(a_id, [tree.entry(one) for one in tree.path_ids(a_id)[shared:]], estimator)
    b = _side(b_id, [tree.entry(one) for one in tree.path_ids(b_id)[shared:]], estimator)
    in_b = set(b.files.modified_files)
    both = tuple(path for path in a.files.modified_files if path in in_b)
    return BranchComparison(ancestor, shared, a, b, both)


def _side(end_id: str, entries: Sequence[Entry], estimator: TokenEstimator) -> BranchSide:
    prompts: list[str] = []
    calls: Counter[str] = Counter()
    files = FileOps()
    tokens = answers = 0
    cost = 0.0
    last_answer = ""
    for entry in entries:
        cost += _cost(entry)
        if isinstance(entry, CompactionEntry | BranchSummaryEntry) and not entry.from_hook:
            files.add_details(entry.details)
        for message in messages_of(entry):
            tokens += sent_tokens(message, estimator)
            files.add_message(message)
            if isinstance(message, UserMessage):
                prompts.append(text_of(message.content))
            elif isinstance(message, AssistantMessage):
                answers += 1
                calls.update(call.name for call in message.tool_calls)
                last_answer = message.text or last_answer
    return BranchSide(
        end_id=end_id,
        entries=len(entries),
        prompts=tuple(prompts),
        answers=answers,
        tool_calls=tuple(calls.most_common()),
        files=files.lists(),
        tokens=tokens,
        cost=cost,
        last_answer=last_answer,
        started=entries[0].timestamp if entries else "",
        ended=entries[-1].timestamp if entries else "",
    )


def _cost(entry: Entry) -> float:
    if isinstance(entry, CompactionEntry | BranchSummaryEntry):
        return entry.usage.cost.total if entry.usage is not None else 0.0
    return sum(_message_cost(message) for message in messages_of(entry))


def _message_cost(message: Message) -> float:
    if isinstance(message, AssistantMessage) and message.usage is not None:
        return message.usage.cost.total
    return 0.0
