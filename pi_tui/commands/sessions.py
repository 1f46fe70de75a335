"""The commands about stored sessions: resume, fork, clone, import, export.

They reach files through the protocols of `core.session_library`, which the wiring fills. Whatever
runs is stopped before the session is left; nothing is left before the new one is open.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Protocol, runtime_checkable

from msgspec import Struct

from pi_tui.agent.queues import Draft
from pi_tui.agent.session import AgentSession
from pi_tui.commands.drafts import edit_again
from pi_tui.commands.registry import Command, CommandCall
from pi_tui.commands.session_opening import go_to, go_to_answered, open_asking
from pi_tui.commands.ui import Choice
from pi_tui.core.entries import MessageEntry
from pi_tui.core.errors import TargetExistsError, UsageError
from pi_tui.core.messages import ImageContent, UserMessage, images_of, text_of
from pi_tui.core.references import beginning_with
from pi_tui.core.session_library import (
    Exporter,
    ExportReport,
    SessionHit,
    SessionLibrary,
    SessionRow,
    snapshot_of,
)
from pi_tui.core.session_search import parse_query
from pi_tui.core.tree import SessionTree

LISTED = 500
"""How many sessions a plain list offers; a picker of its own reads on as it scrolls."""
TITLE_CHARS = 100
LONGEST_NUMBER_DIGITS = 4
"""Digits up to this many are the number of a message, never the beginning of an id."""
_ALL = "*all*"


@runtime_checkable
class PicksSessions(Protocol):
    """A front end with a session picker of its own; others get a plain list."""

    async def pick_session(self, library: SessionLibrary, query: str) -> str | None:
        """Let the person choose, rename and delete; the path of the chosen one."""
        ...


def session_commands(library: SessionLibrary, exporter: Exporter) -> tuple[Command, ...]:
    """The commands over a library and an exporter, to be added to a registry."""
    actions = _SessionCommands(library, exporter)
    return (
        Command("resume", "open another session", actions.resume, "[search or id]"),
        Command(
            "fork",
            "start a new session from before an earlier message of yours",
            actions.fork,
            "[entry id or number]",
        ),
        Command("clone", "copy the current branch into a new session", actions.clone),
        Command("import", "copy a session file into your sessions", actions.import_, "PATH"),
        Command(
            "export",
            "write the conversation to a .html, .md or .jsonl file",
            actions.export,
            "[--force] [--unmasked] [PATH]",
        ),
    )


class _SessionCommands:
    def __init__(self, library: SessionLibrary, exporter: Exporter) -> None:
        self._library = library
        self._exporter = exporter

    # ------------------------------------------------------------ resume

    async def resume(self, call: CommandCall) -> None:
        """Choose a session, or open the one that is named."""
        path = await self._chosen(call)
        if path is None:
            call.ui.notify("info", "resume: nothing was opened")
            return
        if _is_same_file(path, call.session.store.path):
            call.ui.notify("info", "resume: this is the session you are in")
            return
        answered = await open_asking(path, self._library, call.ui)
        if answered is None:
            call.ui.notify("info", "resume: nothing was opened")
            return
        await go_to_answered(call.session, answered, call.ui)

    async def _chosen(self, call: CommandCall) -> str | None:
        wanted = call.argument
        if _is_reference(wanted):
            return await asyncio.to_thread(self._library.find, wanted)
        if isinstance(call.ui, PicksSessions):
            return await call.ui.pick_session(self._library, wanted)
        if not wanted:
            return await self._choose_row(call)
        query = parse_query(wanted)
        hits = await asyncio.to_thread(
            lambda: list(islice(self._library.search(query, everywhere=True), LISTED))
        )
        if not hits:
            raise UsageError(f"no session fits {wanted!r}", hint="/resume lists the sessions.")
        if len(hits) == 1:
            return hits[0].row.path
        hits.sort(key=lambda hit: -hit.score)
        options = [self._choice(hit.row, hit) for hit in hits]
        return await call.ui.choose(f"Sessions that fit {wanted}", options)

    async def _choose_row(self, call: CommandCall) -> str | None:
        here = await self._rows(everywhere=False)
        if here:
            options = [self._choice(row) for row in here]
            options.append(Choice(_ALL, "other directories …", "list the sessions of all"))
            answer = await call.ui.choose("Resume session", options, call.session.store.path)
            if answer != _ALL:
                return answer
        rows = await self._rows(everywhere=True)
        if not rows:
            raise UsageError("there are no stored sessions yet")
        if not here:
            shown = self._library.shown(self._library.cwd)
            call.ui.notify("info", f"resume: no session belongs to {shown}; these are all others")
        options = [self._choice(row) for row in rows]
        return await call.ui.choose("Resume session of any directory", options)

    async def _rows(self, *, everywhere: bool) -> list[SessionRow]:
        return await asyncio.to_thread(
            lambda: list(islice(self._library.rows(everywhere=everywhere), LISTED))
        )

    def _choice(self, row: SessionRow, hit: SessionHit | None = None) -> Choice:
        parts = [
            "1 message" if row.message_count == 1 else f"{row.message_count} messages",
            *([f"{row.branch_count} branches"] if row.branch_count > 1 else []),
            age_text(time.time_ns() // 1_000_000 - row.modified_ms),
        ]
        if row.cwd and row.cwd != self._library.cwd:
            gone = "" if row.cwd_exists else " (does not exist any more)"
            parts.append(f"{self._library.shown(row.cwd)}{gone}")
        if hit is not None and hit.excerpt not in row.title:
            parts.append(hit.excerpt.strip())
        return Choice(row.path, row.title[:TITLE_CHARS], " · ".join(parts))

    # ------------------------------------------------------------ fork, clone, import

    async def fork(self, call: CommandCall) -> None:
        """Go on from before a user message, in a new session."""
        session = call.session
        _refuse_unsaved(session, "forked")
        tree = session.tree
        messages = await session.branches.read(user_messages)
        if not messages:
            raise UsageError("there is no message of yours to fork from yet")
        entry_id = await self._message_id(call, messages)
        if entry_id is None:
            call.ui.notify("info", "fork: nothing was changed")
            return
        message = next(message for message in messages if message.entry_id == entry_id)
        if session.tree is not tree:
            raise UsageError("another session was opened meanwhile; nothing was forked")
        await self._copy(call, tree.parent(entry_id))
        edit_again(call.ui, Draft(message.text, message.images))
        call.ui.notify("info", "forked: the message is in the editor; the old session is unchanged")

    async def _message_id(self, call: CommandCall, messages: list[UserText]) -> str | None:
        if call.argument:
            return _named_message(call.argument, messages)
        path = set(call.session.tree.path_ids())
        total = len(messages)
        options = [
            Choice(
                m.entry_id,
                " ".join(m.text.split())[:TITLE_CHARS] or "(no text)",
                f"message {number} of {total}"
                + ("" if m.entry_id in path else " · on another branch"),
            )
            for number, m in enumerate(messages, 1)
        ]
        on_path = [m.entry_id for m in messages if m.entry_id in path]
        newest = on_path[-1] if on_path else messages[-1].entry_id
        return await call.ui.choose("Fork from before", options, newest)

    async def clone(self, call: CommandCall) -> None:
        """Copy the path to the leaf into a new session, and go on there."""
        _refuse_unsaved(call.session, "copied")
        if call.session.tree.leaf_id is None:
            raise UsageError("there is nothing to copy yet")
        await self._copy(call, call.session.tree.leaf_id)
        call.ui.notify("info", "cloned: you are in the copy; the old session is unchanged")

    async def _copy(self, call: CommandCall, leaf_id: str | None) -> None:
        session = call.session
        async with session.leaving():
            name = session.name
            tree = session.tree
            opened = await asyncio.to_thread(
                self._library.fork, session.store, tree.path_ids(leaf_id), tree.labels
            )
            await go_to(session, opened, "fork", call.ui)
        if name and session.name != name:
            session.set_name(name)

    async def import_(self, call: CommandCall) -> None:
        """Copy a file into the library and open the copy."""
        path = _unquoted(call.argument)
        if not path:
            raise UsageError("say which file: /import PATH")
        opened = await asyncio.to_thread(self._library.import_file, path)
        await go_to(call.session, opened, "resume", call.ui)
        call.ui.notify("info", f"imported: {call.session.name or path}; the file is unchanged")

    # ------------------------------------------------------------ export

    async def export(self, call: CommandCall) -> None:
        """Write the session to a file."""
        session = call.session
        if not len(session.tree):
            raise UsageError("there is nothing to export yet")
        words = _Export.parse(call.argument)
        path = self._library.expand(words.path or default_export_name(session))
        call.ui.notify(
            "info",
            "export: the file holds the whole conversation, with what tools read and printed; "
            "look through it before you give it away",
        )
        snapshot = snapshot_of(session.tree, session.store)
        write = partial(self._exporter.export, snapshot, path, masked=words.masked)
        try:
            report = await asyncio.to_thread(write, replace=words.force)
        except TargetExistsError as error:
            answer = await call.ui.choose(
                f"{self._library.shown(path)} exists already",
                [Choice("cancel", "keep it"), Choice("replace", "write over it")],
            )
            if answer is None:
                raise UsageError(error.text, hint="/export --force PATH writes over it.") from error
            if answer != "replace":
                call.ui.notify("info", "export: nothing was written")
                return
            report = await asyncio.to_thread(write, replace=True)
        call.ui.notify("info", export_text(report, self._library.shown(report.path)))


class UserText(Struct, frozen=True):
    """A message of the user: where it is, its text, its images."""

    entry_id: str
    text: str
    images: tuple[ImageContent, ...]


def user_messages(tree: SessionTree) -> list[UserText]:
    """All messages of the user in file order, of all branches."""
    found = []
    for entry_id in tree.ids():
        if tree.head(entry_id).role == "user":
            entry = tree.entry(entry_id)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                content = entry.message.content
                found.append(UserText(entry_id, text_of(content), images_of(content)))
    return found


def _named_message(wanted: str, messages: list[UserText]) -> str:
    """The id of the message that a number, an id or the beginning of an id stands for.

    A few digits are always a number: a number that is out of range must not turn into the
    beginning of an id by chance, since a fork from the wrong place looks like a right one.

    Raises UsageError when no message fits, or more than one.
    """
    if any(m.entry_id == wanted for m in messages):
        return wanted
    number = int(wanted) if wanted.isdecimal() and len(wanted) <= 9 else 0
    if 1 <= number <= len(messages):
        return messages[number - 1].entry_id
    named = []
    if not (wanted.isdecimal() and len(wanted) <= LONGEST_NUMBER_DIGITS):
        named = beginning_with(wanted, (m.entry_id for m in messages))
    if len(named) != 1:
        raise UsageError(
            f"{wanted!r} is not the id or the number of one of your messages",
            hint=f"Numbers go from 1 to {len(messages)}; /fork alone lists them.",
        )
    return named[0]


def _refuse_unsaved(session: AgentSession, done: str) -> None:
    if session.store.path is None:
        raise UsageError(
            f"this session is not saved, so it cannot be {done}",
            hint="Start without --no-session to keep sessions.",
        )


def _is_same_file(path: str, other: str | None) -> bool:
    return other is not None and os.path.realpath(path) == os.path.realpath(other)


_REFERENCE = re.compile(r"[0-9a-f][0-9a-f-]{5,}\Z")


def _is_reference(text: str) -> bool:
    """True for a path and for what looks like a session id."""
    if not text or '"' in text or text.startswith("re:"):
        return False
    return "/" in text or text.endswith(".jsonl") or _REFERENCE.match(text) is not None


def _unquoted(argument: str) -> str:
    """A path as typed; quotes and backslashes as in a shell, where they make sense."""
    if not any(mark in argument for mark in "'\"\\"):
        return argument
    try:
        words = shlex.split(argument)
    except ValueError:
        return argument
    return words[0] if len(words) == 1 else argument


class _Export(Struct, frozen=True):
    path: str
    force: bool
    masked: bool

    @classmethod
    def parse(cls, argument: str) -> _Export:
        rest = argument
        flags: set[str] = set()
        while rest.startswith("--"):
            flag, _, rest = rest.partition(" ")
            if flag not in ("--force", "--unmasked"):
                raise UsageError(
                    f"/export knows no {flag}", hint="/export [--force] [--unmasked] [PATH]"
                )
            flags.add(flag)
            rest = rest.lstrip()
        return cls(_unquoted(rest), "--force" in flags, "--unmasked" not in flags)


def default_export_name(session: AgentSession) -> str:
    """The name of an export nobody named: after the session, in the present directory."""
    words = re.findall(r"[^\W_]+", session.name or "")
    stem = "-".join(words)[:60].strip("-")
    return f"{stem or f'session-{session.session_id[:8]}'}.html"


def export_text(report: ExportReport, shown_path: str) -> str:
    """What to tell about a finished export."""
    said = [f"exported: {shown_path} ({report.size_bytes:,} bytes, readable by you alone)"]
    if report.masked_keys:
        keys = "1 key was" if report.masked_keys == 1 else f"{report.masked_keys} keys were"
        said.append(f"{keys} masked")
    if report.commands_left_out:
        number = report.commands_left_out
        said.append(f"{number} !! command{'s were' if number > 1 else ' was'} left out")
    if report.format == "jsonl":
        said.append("nothing was masked: it is the session as it is stored")
    return "; ".join(said)


_AGES: Sequence[tuple[int, str]] = (
    (60_000, "min"),
    (3_600_000, "h"),
    (86_400_000, "d"),
)


def age_text(age_ms: int) -> str:
    """How long ago, in one unit: `now`, `5 min`, `3 h`, `12 d`."""
    text = "now"
    for unit_ms, name in _AGES:
        if age_ms >= unit_ms:
            text = f"{age_ms // unit_ms} {name}"
    return text
