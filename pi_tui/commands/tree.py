"""`/tree`, `/label`, `/compare`, `/hide`, `/omit`: the session tree for every front end.

A front end with a tree panel opens it for `/tree` alone; everywhere else, and for everything the
panel does, these commands are enough. Entries are named by id, by the beginning of one, by label,
or as `leaf`. Texts of the session are foreign: they are put on one safe line before they are shown.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from functools import partial

from msgspec import Struct

from pi_tui.agent.branch_comparison import BranchComparison, BranchSide
from pi_tui.agent.navigator import NavigateRequest, NavigationOutcome
from pi_tui.agent.queues import Draft
from pi_tui.agent.session import AgentSession
from pi_tui.agent.tree_dump import entry_line, one_line
from pi_tui.commands.drafts import edit_again, give_back
from pi_tui.commands.facts import show
from pi_tui.commands.registry import Command, CommandCall
from pi_tui.commands.ui import CommandUI, OpensTree
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import JSON
from pi_tui.core.numbers import compact_count
from pi_tui.core.tree import SessionTree

TREE_HINT = "[ID] [--summarize[=instructions] [--replace]] [--label TEXT] | --undo | --dump"

_PROMPTS_SHOWN = 8
_FILES_SHOWN = 20
_QUIET_TYPES = frozenset(
    {
        "model_change",
        "thinking_level_change",
        "label",
        "custom",
        "session_info",
        "context_edit",
        "usage",
    }
)
"""Entries that a printed tree leaves out, unless the leaf is one; --dump shows them."""


def tree_commands() -> tuple[Command, ...]:
    """The commands of this module."""
    return (
        Command("tree", "show the session tree, or go to an entry of it", _tree, TREE_HINT),
        Command("label", "name an entry of the tree, or take its name away", _label, "[ID] [TEXT]"),
        Command("compare", "compare two branches", _compare, "A [B]"),
        Command("hide", "hide a dead branch; nothing is deleted", _hide, "ID"),
        Command("unhide", "show hidden branches again", _unhide, "[ID]"),
        Command("omit", "leave a message out of the context", _omit, "ID"),
        Command("restore", "take a message back into the context", _restore, "ID"),
    )


# ---------------------------------------------------------------- /tree


class TreeOptions(Struct, frozen=True):
    """What was typed after `/tree`. `target`: as it was typed, "" when none was."""

    target: str = ""
    summarize: bool = False
    instructions: str | None = None
    replace: bool = False
    label: str | None = None
    undo: bool = False
    dump: bool = False


def parse_tree(argument: str) -> TreeOptions:
    """Read the arguments of `/tree`. Raises UsageError."""
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise UsageError(
            f"the quotes do not match ({error})", hint='Put texts in double quotes: "like this".'
        ) from error
    found: dict[str, JSON] = {}
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if name in ("--summarize", "--summarise"):
            found["summarize"] = True
            found["instructions"] = value.strip() or None
        elif name == "--label":
            found["label"] = value if equals else next(waiting, "")
            if not found["label"].strip():
                raise UsageError("--label needs a text", hint=f"/tree {TREE_HINT}")
        elif word in ("--replace", "--undo", "--dump"):
            found[word.removeprefix("--")] = True
        elif word.startswith("-"):
            raise UsageError(f"/tree has no option {word}", hint=f"/tree {TREE_HINT}")
        elif "target" in found:
            raise UsageError(
                f"what is {word!r}? /tree takes one entry",
                hint='Instructions follow the option: --summarize="what matters".',
            )
        else:
            found["target"] = word
    options = TreeOptions(**found)
    _check(options)
    return options


def _check(options: TreeOptions) -> None:
    going = options.summarize or options.label is not None or options.replace
    if (options.undo or options.dump) and (going or options.target):
        raise UsageError("--undo and --dump stand alone", hint=f"/tree {TREE_HINT}")
    if options.undo and options.dump:
        raise UsageError("--undo and --dump are two commands", hint=f"/tree {TREE_HINT}")
    if going and not options.target:
        raise UsageError("say which entry to go to", hint=f"/tree {TREE_HINT}")
    if options.replace and options.instructions is None:
        raise UsageError('--replace needs instructions: --summarize="…" --replace')


async def _tree(call: CommandCall) -> None:
    options = parse_tree(call.argument)
    session = call.session
    if options.undo:
        tell_navigation(call.ui, await session.undo_navigation())
    elif options.target:
        request = NavigateRequest(
            target_id=session.branches.find(options.target),
            summarize=options.summarize,
            custom_instructions=options.instructions,
            replace_instructions=options.replace,
            label=options.label,
        )
        tell_navigation(call.ui, await session.navigate(request))
    elif options.dump or not (isinstance(call.ui, OpensTree) and call.ui.open_tree()):
        dump = await session.tree_dump()
        text = await asyncio.to_thread(partial(tree_text, dump, everything=options.dump))
        show(call.ui, "Session Tree", text or "The session is empty.", dump)


def tell_navigation(ui: CommandUI, outcome: NavigationOutcome) -> None:
    """Show how a move ended, and put into the editor what belongs there."""
    if outcome.taken_back:
        give_back(ui, outcome.taken_back)
    if outcome.editor_text or outcome.editor_images:
        edit_again(ui, Draft(outcome.editor_text or "", outcome.editor_images))
    ui.notify("error" if outcome.kind == "failed" else "info", outcome.message)


def tree_text(dump: JSON, *, everything: bool = False) -> str:
    """A dumped tree as lines: `•` on the path to the leaf, `›` the leaf, indented at each fork.

    Without `everything` hidden branches and entries that are no part of the conversation are left
    out, and hidden ones counted.
    """
    nodes = dump["nodes"]
    forks: dict[str | None, int] = {}
    for node in nodes:
        forks[node["parentId"]] = forks.get(node["parentId"], 0) + 1
    indents: dict[str, int] = {}
    hidden: set[str] = set()
    lines: list[str] = []
    counted = 0
    for node in nodes:
        parent = node["parentId"]
        indents[node["id"]] = indents.get(parent, 0) + (forks[parent] > 1)
        if not everything and not node["onPath"] and (node["hidden"] or parent in hidden):
            hidden.add(node["id"])
            counted += 1
        elif everything or node["leaf"] or node["type"] not in _QUIET_TYPES:
            lines.append(_node_line(node, indents[node["id"]]))
    if counted:
        entries = "one entry is" if counted == 1 else f"{counted} entries are"
        lines.append(f"({entries} on hidden branches; /unhide shows them)")
    return "\n".join(lines)


def _node_line(node: JSON, indent: int) -> str:
    mark = "›" if node["leaf"] else "•" if node["onPath"] else " "
    role = node["role"]
    said = f"{role}: {node['text']}" if role in ("user", "assistant") else node["text"]
    label = f"[{node['label']}] " if node["label"] else ""
    notes = "".join(
        f" ({words})"
        for key, words in (("hidden", "hidden"), ("leftOut", "left out of the context"))
        if node[key]
    )
    return f"{mark} {node['id']}  {'   ' * indent}{label}{said}{notes}"


# ---------------------------------------------------------------- /label

_LIKE_AN_ID = re.compile(r"[0-9a-f]{8}")


async def _label(call: CommandCall) -> None:
    session = call.session
    entry_id, text = _labelled(call)
    if entry_id is None:
        call.ui.show("Labels", await session.branches.read(labels_text))
        return
    had = session.tree.label(entry_id)
    if not text and had is None:
        raise UsageError(f"{entry_id} has no label", hint="/label ID TEXT gives it one.")
    label = session.set_label(entry_id, text or None)
    shown = "removed" if label is None else one_line(label)
    call.ui.notify("info", f"label of {entry_id}: {shown}")


def _labelled(call: CommandCall) -> tuple[str | None, str]:
    """The entry to label, None for "show the labels", and the text."""
    first, _, rest = call.argument.partition(" ")
    if not first:
        newest = _newest_message(call.session)
        has_label = newest is not None and call.session.tree.label(newest) is not None
        return (newest if has_label else None), ""
    try:
        return call.session.branches.find(first), rest.strip()
    except UsageError:
        if _LIKE_AN_ID.fullmatch(first):
            raise
    newest = _newest_message(call.session)
    if newest is None:
        raise UsageError("there is no message to label yet")
    return newest, call.argument


def _newest_message(session: AgentSession) -> str | None:
    tree = session.tree
    path = reversed(tree.path_ids())
    return next((one for one in path if tree.head(one).role in ("user", "assistant")), None)


def labels_text(tree: SessionTree) -> str:
    """All labels with their entries, in the order they were set."""
    rows = [
        f"{label.target_id}  [{one_line(label.text)}] {_line(tree, label.target_id)}"
        for label in tree.labels
        if label.target_id in tree
    ]
    return "\n".join(rows) or "There are no labels. /label TEXT names the newest message."


def _line(tree: SessionTree, entry_id: str) -> str:
    head = tree.head(entry_id)
    role = f"{head.role}: " if head.role in ("user", "assistant") else ""
    return role + entry_line(tree.entry(entry_id))


# ---------------------------------------------------------------- /compare


async def _compare(call: CommandCall) -> None:
    names = call.argument.split()
    if len(names) not in (1, 2):
        raise UsageError("/compare takes two entries", hint="/compare A B, or A for A and the leaf")
    find = call.session.branches.find
    a_id, b_id = find(names[0]), find(names[1] if len(names) > 1 else "leaf")
    await show_comparison(call.session, call.ui, a_id, b_id)


async def show_comparison(session: AgentSession, ui: CommandUI, a_id: str, b_id: str) -> None:
    """Show what two branches share and what each did. Raises StorageError."""
    tree = session.tree
    comparison = await session.branches.compare(a_id, b_id)
    show(ui, "Two branches", comparison_text(comparison, tree), comparison)


def comparison_text(comparison: BranchComparison, tree: SessionTree) -> str:
    """Two branches as lines of plain text."""
    ancestor = comparison.ancestor_id
    if ancestor is None:
        shared = "They share nothing."
    else:
        shared = (
            f"Both come from {ancestor} ({_count(comparison.shared_entries, 'entry', 'entries')} "
            f"shared):\n  {_line(tree, ancestor)}"
        )
    parts = [
        shared,
        _side_text("A", comparison.a, tree),
        _side_text("B", comparison.b, tree),
    ]
    if comparison.changed_by_both:
        parts.append("Changed by both:\n" + _listed(comparison.changed_by_both))
    if comparison.a.files.modified_files or comparison.b.files.modified_files:
        parts.append(
            "Files on disk stand as the last work left them, whichever branch it was done on."
        )
    return "\n\n".join(parts)


def _side_text(name: str, side: BranchSide, tree: SessionTree) -> str:
    label = tree.label(side.end_id)
    title = f"{name}: up to {side.end_id}" + (f" [{one_line(label)}]" if label else "")
    if not side.entries:
        return f"{title}\n  nothing of its own: the other branch goes on from here"
    facts = [
        _count(side.entries, "entry", "entries"),
        _count(side.answers, "answer", "answers"),
        f"about {compact_count(side.tokens)} tokens",
    ]
    if side.cost:
        facts.append(f"${side.cost:.4f}")
    facts.append(f"{_minute(side.started)} to {_minute(side.ended)}")
    lines = [title, f"  {' · '.join(facts)}"]
    if side.prompts:
        shown = side.prompts[:_PROMPTS_SHOWN]
        lines.append("  asked:")
        lines += [f"    - {one_line(prompt) or '(no text)'}" for prompt in shown]
        if len(side.prompts) > len(shown):
            lines.append(f"    - and {len(side.prompts) - len(shown)} more")
    if side.tool_calls:
        calls = ", ".join(f"{one_line(tool)} ×{times}" for tool, times in side.tool_calls)
        lines.append(f"  tools: {calls}")
    for what, paths in (("changed", side.files.modified_files), ("read", side.files.read_files)):
        if paths:
            lines.append(f"  {what}:")
            lines.append(_listed(paths, "    "))
    if side.last_answer:
        lines.append(f"  last answer: {one_line(side.last_answer)}")
    return "\n".join(lines)


def _listed(paths: tuple[str, ...], indent: str = "  ") -> str:
    shown = [f"{indent}{one_line(path)}" for path in paths[:_FILES_SHOWN]]
    if len(paths) > _FILES_SHOWN:
        shown.append(f"{indent}and {len(paths) - _FILES_SHOWN} more")
    return "\n".join(shown)


def _count(number: int, one: str, many: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {many}"


def _minute(timestamp: str) -> str:
    return one_line(timestamp[:16].replace("T", " ")) or "?"


# ---------------------------------------------------------------- /hide, /omit


async def _hide(call: CommandCall) -> None:
    branches = call.session.branches
    entry_id = branches.find(_one_entry(call))
    branches.hide(entry_id)
    call.ui.notify("info", f"hidden: the branch at {entry_id}; /unhide {entry_id} shows it again")


async def _unhide(call: CommandCall) -> None:
    branches = call.session.branches
    entry_id = branches.find(_one_entry(call)) if call.argument else None
    shown = branches.unhide(entry_id)
    call.ui.notify("info", f"shown again: {', '.join(shown)}")


async def _omit(call: CommandCall) -> None:
    branches = call.session.branches
    entry_id = branches.find(_one_entry(call))
    left_out = branches.leave_out(entry_id)
    call.ui.notify(
        "info",
        f"left out of the context: {_with_results(entry_id, left_out)}; it stays in the session, "
        f"/restore {entry_id} takes it back",
    )


async def _restore(call: CommandCall) -> None:
    branches = call.session.branches
    entry_id = branches.find(_one_entry(call))
    restored = branches.restore(entry_id)
    call.ui.notify("info", f"back in the context: {_with_results(entry_id, restored)}")


def _with_results(entry_id: str, changed: tuple[str, ...]) -> str:
    others = len(changed) - 1
    if others <= 0:
        return entry_id
    return f"{entry_id} and {_count(others, 'tool result', 'tool results')} of it"


def _one_entry(call: CommandCall) -> str:
    if len(call.argument.split()) != 1:
        raise UsageError(f"/{call.name} takes one entry", hint="/tree --dump shows the ids.")
    return call.argument
