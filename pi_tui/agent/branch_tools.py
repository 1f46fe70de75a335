"""What people do to entries of the tree besides going there: names, hiding, leaving out, finding.

Everything is an appended entry; nothing is deleted or rewritten. Hiding is a view filter of the
session, kept as `custom` entries of type `pi-tui.hidden` with `{"targetId": …, "hidden": true |
false}`; the last one in the file decides, on whatever branch it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from pi_tui.agent.branch_comparison import BranchComparison, compare_branches
from pi_tui.agent.counting import count_in_thread
from pi_tui.agent.journal import Journal
from pi_tui.agent.tree_dump import tree_dump
from pi_tui.core.context_edits import EditRefusal, RefusedEdit, plan_context_edit
from pi_tui.core.entries import (
    ContextEditEntry,
    CustomEntry,
    LabelEntry,
    MessageEntry,
    entry_to_data,
)
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import JSON, AssistantMessage, ToolResultMessage
from pi_tui.core.pins import with_pin_partners
from pi_tui.core.projection import project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.references import beginning_with
from pi_tui.core.session_library import snapshot_of
from pi_tui.core.tree import SessionTree

T = TypeVar("T")

HIDDEN_TYPE = "pi-tui.hidden"
LEFT_OUT_RESULT = "(left out of the context by the user)"
"""What a tool result says that was left out: its call must keep an answer."""

_REFUSALS: dict[EditRefusal, str] = {
    "bad-replacement": "its content cannot be put back",
    "not-found": "there is no such entry",
    "not-on-branch": "it is not on this branch; go there first, see /tree",
    "not-editable": "it is no message of the conversation",
}


class BranchTools:
    """Works on the entries of one session at a time.

    `refuse_changes` raises UsageError where nothing may be appended.
    """

    def __init__(
        self,
        journal: Callable[[], Journal],
        estimator: TokenEstimator,
        refuse_changes: Callable[[], None],
    ) -> None:
        self._journal = journal
        self._estimator = estimator
        self._refuse_changes = refuse_changes
        self._hidden = _HiddenBranches()

    # ------------------------------------------------------------ finding and reading

    def find(self, reference: str) -> str:
        """The entry an id, the beginning of one, a label or the word `leaf` means.

        Raises UsageError when nothing or more than one entry fits.
        """
        tree = self._journal().tree
        if reference in tree:
            return reference
        if reference.lower() == "leaf" and tree.leaf_id is not None:
            return tree.leaf_id
        wanted = reference.casefold()
        labelled = [label.target_id for label in tree.labels if label.text.casefold() == wanted]
        found = [entry_id for entry_id in labelled if entry_id in tree]
        if not found:
            found = beginning_with(wanted, tree.ids())
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(found[:4]) + (", …" if len(found) > 4 else "")
            raise UsageError(f"{reference!r} could be {shown}; give more of the id")
        raise UsageError(
            f"there is no entry {reference!r}", hint="/tree --dump shows the ids and labels."
        )

    async def read(self, read: Callable[[SessionTree], T]) -> T:
        """Run something that decodes many entries, in a thread and over a tree of its own.

        It sees the entries as they are now; the session goes on meanwhile.
        """
        journal = self._journal()
        snapshot = snapshot_of(journal.tree, journal.store)
        return await asyncio.to_thread(lambda: read(snapshot.tree()))

    async def compare(self, a_id: str, b_id: str) -> BranchComparison:
        """What the paths to two entries have in common, and what each did after that.

        Raises StorageError for an entry that cannot be read.
        """
        journal = self._journal()
        snapshot = snapshot_of(journal.tree, journal.store)
        return await count_in_thread(
            self._estimator, lambda lent: compare_branches(snapshot.tree(), a_id, b_id, lent)
        )

    async def dump(self) -> JSON:
        """The whole tree as JSON data; see `tree_dump`."""
        return await self.read(_dump)

    @property
    def hidden(self) -> frozenset[str]:
        """The entries whose branches are hidden; a view never hides the path to the leaf."""
        return self._hidden.of(self._journal().tree)

    @property
    def left_out(self) -> frozenset[str]:
        """The entries of the path to the leaf that were left out of the context."""
        return _left_out(self._journal().tree)

    # ------------------------------------------------------------ labels

    def set_label(self, entry_id: str, label: str | None) -> str | None:
        """Name an entry, or take its name away; returns the name it has now.

        The label is an entry at the leaf, and nothing is appended where nothing changes. Raises
        UsageError for an entry that is not there.
        """
        journal = self._writable(entry_id)
        text = " ".join(label.split()) if label else ""
        if text != (journal.tree.label(entry_id) or ""):
            fields = journal.next_fields()
            journal.append(LabelEntry(target_id=entry_id, label=text or None, **fields))
        return text or None

    # ------------------------------------------------------------ leaving out

    def leave_out(self, entry_id: str) -> tuple[str, ...]:
        """Send a message to the model no longer; it stays in the session and on screen.

        An answer with tool calls takes its results along; a tool result keeps a line in its place.
        Returns the entries left out. Raises UsageError when that cannot be done.
        """
        journal = self._writable(entry_id)
        if entry_id in self.left_out:
            raise UsageError(f"{entry_id} is left out already; /restore {entry_id} takes it back")
        self._check_editable(journal.tree, entry_id)
        left_out = tuple(_exchange(journal.tree, entry_id))
        if left_out[0] == entry_id and entry_id not in _context_ids(journal.tree):
            raise UsageError(
                f"{entry_id} is not in the context now: a compaction covers it already"
            )
        for one in left_out:
            whole = len(left_out) > 1 or not _is_result(journal.tree, one)
            self._edit(journal, one, None if whole else {"content": LEFT_OUT_RESULT})
        return left_out

    def restore(self, entry_id: str) -> tuple[str, ...]:
        """Send a message again that was left out, with what was left out along with it."""
        journal = self._writable(entry_id)
        left_out = self.left_out
        if entry_id not in left_out:
            raise UsageError(f"{entry_id} is not left out of the context of this branch")
        restored = tuple(one for one in _exchange(journal.tree, entry_id) if one in left_out)
        for one in restored:
            self._edit(journal, one, {"content": _stored_content(journal.tree, one)})
        return restored

    def _check_editable(self, tree: SessionTree, entry_id: str) -> None:
        planned = plan_context_edit(tree, entry_id, None)
        if isinstance(planned, RefusedEdit):
            raise UsageError(f"{entry_id} cannot be left out: {_REFUSALS[planned.reason]}")

    def _edit(self, journal: Journal, entry_id: str, replacement: JSON) -> None:
        planned = plan_context_edit(journal.tree, entry_id, replacement)
        if isinstance(planned, RefusedEdit):
            raise UsageError(f"{entry_id} was not changed: {_REFUSALS[planned.reason]}")
        fields = journal.next_fields()
        journal.append(
            ContextEditEntry(target_id=entry_id, replacement=planned.replacement, **fields)
        )

    # ------------------------------------------------------------ hiding

    def hide(self, entry_id: str) -> None:
        """Show the branch that begins at an entry no longer. Raises UsageError on the own path."""
        journal = self._writable(entry_id)
        if entry_id in journal.tree.path_ids():
            raise UsageError("you are on this branch; go to another one, then hide it")
        if entry_id not in self.hidden:
            self._mark_hidden(journal, entry_id, hidden=True)

    def unhide(self, entry_id: str | None = None) -> tuple[str, ...]:
        """Show a hidden branch again, or all of them; returns where they begin.

        An entry inside a hidden branch means that branch. Raises UsageError when none is hidden.
        """
        journal = self._journal()
        self._refuse_changes()
        hidden = self.hidden
        shown: Iterable[str] = sorted(hidden)
        if entry_id is not None:
            shown = [one for one in reversed(journal.tree.path_ids(entry_id)) if one in hidden]
        shown = tuple(shown)
        if not shown:
            what = "no branch is hidden" if entry_id is None else f"{entry_id} is not hidden"
            raise UsageError(what)
        for one in shown:
            self._mark_hidden(journal, one, hidden=False)
        return shown

    @staticmethod
    def _mark_hidden(journal: Journal, entry_id: str, *, hidden: bool) -> None:
        data = {"targetId": entry_id, "hidden": hidden}
        fields = journal.next_fields()
        journal.append(CustomEntry(custom_type=HIDDEN_TYPE, data=data, **fields))

    def _writable(self, entry_id: str) -> Journal:
        journal = self._journal()
        self._refuse_changes()
        if entry_id not in journal.tree:
            raise UsageError(f"there is no entry {entry_id!r}; /tree shows the ids")
        return journal


class _HiddenBranches:
    """Reads which branches are hidden; entries are looked at once, because they never change."""

    def __init__(self) -> None:
        self._tree: SessionTree | None = None
        self._seen = 0
        self._hidden: dict[str, bool] = {}

    def of(self, tree: SessionTree) -> frozenset[str]:
        if tree is not self._tree:
            self._tree, self._seen, self._hidden = tree, 0, {}
        if self._seen < len(tree):
            for entry_id in tree.ids()[self._seen :]:
                if tree.head(entry_id).type == "custom":
                    self._note(tree, entry_id)
            self._seen = len(tree)
        return frozenset(target for target, on in self._hidden.items() if on and target in tree)

    def _note(self, tree: SessionTree, entry_id: str) -> None:
        entry = tree.entry(entry_id)
        if not isinstance(entry, CustomEntry) or entry.custom_type != HIDDEN_TYPE:
            return
        data = entry.data
        if isinstance(data, dict) and isinstance(data.get("targetId"), str):
            self._hidden[data["targetId"]] = data.get("hidden") is True


def _dump(tree: SessionTree) -> JSON:
    return tree_dump(tree, hidden=_HiddenBranches().of(tree), left_out=_left_out(tree))


def _left_out(tree: SessionTree) -> frozenset[str]:
    edits = _edits(tree)
    return frozenset(target for target, edit in edits.items() if _leaves_out(edit))


def _edits(tree: SessionTree) -> dict[str, JSON]:
    """The replacement in force for each edited entry of the path to the leaf."""
    edits: dict[str, JSON] = {}
    for entry_id in tree.path_ids():
        if tree.head(entry_id).type == "context_edit":
            edit = tree.entry(entry_id)
            if isinstance(edit, ContextEditEntry):
                edits[edit.target_id] = edit.replacement
    return edits


def _leaves_out(replacement: JSON) -> bool:
    if replacement is None:
        return True
    content = replacement.get("content") if isinstance(replacement, dict) else None
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return bool(content == LEFT_OUT_RESULT)


def _exchange(tree: SessionTree, entry_id: str) -> list[str]:
    """The entry, and for an answer with calls the results that go with it."""
    entry = tree.entry(entry_id)
    message = entry.message if isinstance(entry, MessageEntry) else None
    if not isinstance(message, AssistantMessage) or not message.tool_calls:
        return [entry_id]
    path = tree.path_ids()
    heads = [tree.head(one) for one in path]
    return [path[i] for i in sorted(with_pin_partners(heads, frozenset({entry_id})))]


def _is_result(tree: SessionTree, entry_id: str) -> bool:
    entry = tree.entry(entry_id)
    return isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage)


def _context_ids(tree: SessionTree) -> frozenset[str]:
    return frozenset(project(tree.context_path()).selected_ids)


def _stored_content(tree: SessionTree, entry_id: str) -> JSON:
    data = entry_to_data(tree.entry(entry_id))
    message = data.get("message", data)
    return message.get("content") if isinstance(message, dict) else None
