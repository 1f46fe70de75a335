"""A move in the tree as a value: what is asked for, how it stands, how it ended.

Front ends use the request, the preview and the outcome; `navigator` carries a move out. Tokens are
estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from pi_tui.agent.branch_summary import SummaryWish
from pi_tui.agent.journal import Journal
from pi_tui.agent.queues import Draft
from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.summariser import SummaryTally
from pi_tui.core.entries import BranchSummaryEntry
from pi_tui.core.messages import JSON, ImageContent
from pi_tui.core.navigation import Navigation, plan_navigation, stands_at

OutcomeKind: TypeAlias = Literal["moved", "already-there", "cancelled", "failed"]


class NavigateRequest(Struct, frozen=True):
    """Where to go. `target_id` None: before the first entry.

    `custom_instructions` are the focus of the summary; with `replace_instructions` they stand
    alone. `label` names the summary entry, or the target when no summary was made.
    """

    target_id: str | None
    summarize: bool = False
    custom_instructions: str | None = None
    replace_instructions: bool = False
    label: str | None = None


class NavigationOutcome(Struct, frozen=True):
    """How a move ended. `message`: one line for people; whoever asked for the move shows it.

    `new_leaf_id` is the leaf now, whatever the kind. `editor_text` is the text of a user message
    that was chosen, None when the editor is to be left alone, `editor_images` are its images; a
    draft that is there always wins. Both are there as well when the message was the next one here
    and nothing had to move ("already-there").
    `taken_back`: messages that waited for the turn that was stopped, with their images; they go
    back to the editor.
    """

    kind: OutcomeKind
    new_leaf_id: str | None
    old_leaf_id: str | None
    editor_text: str | None = None
    summary_entry_id: str | None = None
    message: str = ""
    taken_back: tuple[Draft, ...] = ()
    editor_images: tuple[ImageContent, ...] = ()


class NavigationPreview(Struct, frozen=True):
    """What would be left behind by a move; nothing was sent or changed.

    `entries` are those after the common ancestor that people see in the tree; labels, pins and
    answers with nothing but calls are not. `estimated_tokens` are those of all their messages
    that a summary would be made from, `left_out_messages` the oldest of these that do not fit.
    `summarizable` False: there is nothing to summarise, so nobody need be asked.
    """

    entries: int
    estimated_tokens: int
    summarizable: bool
    left_out_messages: int = 0
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    common_ancestor_id: str | None = None
    already_there: bool = False


class Move:
    """One move under way. `undoes`: it leads back to exactly the place an earlier one left."""

    def __init__(self, request: NavigateRequest, journal: Journal, *, undoes: bool = False) -> None:
        self.request = request
        self.journal = journal
        self.undoes = undoes
        self.target_id = request.target_id
        """The entry to go to; for a marker of a place, that place."""
        self.work = AbortSignal()
        self.telling = AbortSignal()
        self.tally = SummaryTally()
        self.old_leaf_id = journal.tree.leaf_id
        self.taken_back: tuple[Draft, ...] = ()
        self.refused = False
        self.stopped_turn = False
        self.committed = False
        self.shows_activity = False
        self.delivers = True
        self._started_s = journal.clock.monotonic_s()

    def goal(self) -> Navigation:
        """Where the target leads. The leaf stays when only what nobody sees lies between."""
        if self.undoes or self.target_id is None:
            return Navigation(self.target_id)
        tree = self.journal.tree
        marked = self.target_id != self.request.target_id
        goal = Navigation(self.target_id) if marked else plan_navigation(tree, self.target_id)
        here = goal.leaf_id is not None and stands_at(tree, goal.leaf_id)
        return structs.replace(goal, leaf_id=tree.leaf_id) if here else goal

    @property
    def leads_nowhere(self) -> bool:
        """True when the target is the point where one stands. Only an undo looks closer."""
        tree = self.journal.tree
        if self.undoes:
            return self.target_id == tree.leaf_id
        return stands_at(tree, self.target_id)

    def elapsed_ms(self) -> int:
        return round((self.journal.clock.monotonic_s() - self._started_s) * 1000)


class Advice(Struct, frozen=True):
    """What the user asked for, as extensions changed it. `summary` is a hook's, unchecked."""

    wish: SummaryWish
    label: str | None
    summary: JSON = None

    @property
    def has_summary(self) -> bool:
        return self.summary is not None

    def changed_by(self, answers: tuple[Mapping[str, JSON], ...]) -> Advice:
        """Take the answers in order; a later one wins."""
        instructions, replace = self.wish.instructions, self.wish.replace
        label, summary = self.label, self.summary
        for answer in answers:
            if isinstance(answer.get("custom_instructions"), str):
                instructions = answer["custom_instructions"]
            if isinstance(answer.get("replace_instructions"), bool):
                replace = answer["replace_instructions"]
            if isinstance(answer.get("label"), str):
                label = answer["label"]
            if answer.get("summary") is not None:
                summary = answer["summary"]
        return Advice(SummaryWish(instructions, replace), label, summary)


def moved_message(move: Move, entry: BranchSummaryEntry | None, *, moved: bool = True) -> str:
    """The line for people about a move that was made. Not `moved`: only the editor got a text."""
    if not moved:
        return "already at this point; the message can be edited and sent again"
    if move.undoes:
        return "back at the place before the last move"
    if entry is not None:
        return "moved; what was learnt on the branch that was left is summarised"
    if move.request.summarize:
        return "moved; there was nothing to summarise"
    return "moved to another point of the tree"
