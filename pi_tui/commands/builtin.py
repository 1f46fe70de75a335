"""The commands every front end has."""

from __future__ import annotations

from collections.abc import Sequence

from pi_tui.agent.accounting import SessionStats
from pi_tui.agent.session import AgentSession
from pi_tui.commands.compaction import compaction_commands, compaction_rows
from pi_tui.commands.facts import as_data, show
from pi_tui.commands.registry import Command, CommandCall, CommandRegistry
from pi_tui.commands.tree import tree_commands
from pi_tui.commands.ui import Choice
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import THINKING_LEVELS, ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.numbers import compact_count

THINKING_HINTS: dict[ThinkingLevel, str] = {
    "off": "answer at once",
    "minimal": "a glance",
    "low": "short thinking",
    "medium": "ordinary thinking",
    "high": "long thinking",
    "xhigh": "very long thinking, where the model offers it",
    "max": "as long as the model can",
}


def builtin_registry() -> CommandRegistry:
    """A registry with the built-in commands."""
    registry = CommandRegistry()

    async def help_(call: CommandCall) -> None:
        rows = [
            (f"/{c.name} {c.argument_hint}".rstrip(), c.description) for c in registry.commands()
        ]
        rows += [
            ("!command", "run a shell command; the model sees its output with the next message"),
            ("!!command", "run a shell command; the model never sees it"),
        ]
        call.ui.show("Commands", table(rows))

    for command in (
        Command("model", "choose the model", _model, "[provider/model]"),
        Command("thinking", "choose how long the model thinks", _thinking, "[level]"),
        Command("new", "start a new session in this directory", _new),
        Command("name", "show or set the name of the session", _name, "[text]"),
        Command("session", "show file, counts, tokens and cost of the session", _session),
        *compaction_commands(),
        *tree_commands(),
        Command("copy", "copy the last answer", _copy),
        Command("hotkeys", "show the keys", _hotkeys),
        Command("help", "show all commands", help_),
        Command("quit", "leave pi-tui", _quit),
    ):
        registry.add(command)
    return registry


LEFT_COLUMN_CHARS = 24


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns of plain text; a left part that is too wide stands on a line of its own."""
    widths = [len(left) for left, _ in rows if len(left) <= LEFT_COLUMN_CHARS]
    width = max(widths, default=0)
    lines = []
    for left, right in rows:
        if len(left) > width and right:
            lines += [left, f"{'':<{width}}  {right}"]
        else:
            lines.append(f"{left:<{width}}  {right}".rstrip())
    return "\n".join(lines)


async def _model(call: CommandCall) -> None:
    models = call.session.models
    wanted = call.argument
    if not wanted:
        available = models.available()
        picked = await call.ui.choose(
            "Model",
            [Choice(m.full_name, m.id, _model_detail(m)) for m in available],
            call.session.model.full_name,
        )
        if picked is None:
            return
        wanted = picked
    choice = models.resolve(wanted)
    models.provider_for(choice.model)  # a missing key is better told now than with the next message
    call.session.set_model(choice.model)
    if choice.thinking_level is not None:
        call.session.set_thinking_level(choice.thinking_level)
    call.ui.notify("info", f"model: {choice.model.full_name}")


def _model_detail(model: Model) -> str:
    parts = [model.provider, f"{compact_count(model.context_window)} window"]
    if model.reasoning:
        parts.append("thinking")
    if model.cost.input or model.cost.output:
        parts.append(f"${model.cost.input:g}/${model.cost.output:g} per M tokens")
    return " · ".join(parts)


async def _thinking(call: CommandCall) -> None:
    session = call.session
    if not session.model.reasoning:
        raise UsageError(f"{session.model.full_name} has no thinking levels")
    offered = thinking_levels(session.model)
    wanted = call.argument.lower()
    if not wanted:
        picked = await call.ui.choose(
            "Thinking",
            [Choice(level, level, THINKING_HINTS[level]) for level in offered],
            session.thinking_level,
        )
        if picked is None:
            return
        wanted = picked
    level = next((one for one in offered if one == wanted), None)
    if level is None:
        raise UsageError(
            f"{wanted!r} is no thinking level here; choose one of {', '.join(offered)}"
        )
    session.set_thinking_level(level)
    call.ui.notify("info", f"thinking: {level}")


def thinking_levels(model: Model) -> tuple[ThinkingLevel, ...]:
    """The levels a model offers, lowest first; only "off" for a model that does not reason.

    A level mapped to None is not offered; "xhigh" and "max" are offered only when mapped.
    """
    if not model.reasoning:
        return ("off",)
    named = model.thinking_level_map
    return tuple(
        level
        for level in THINKING_LEVELS
        if named.get(level, "" if level not in ("xhigh", "max") else None) is not None
    )


async def _new(call: CommandCall) -> None:
    await call.session.new_session()
    call.ui.notify("info", "new session")


async def _name(call: CommandCall) -> None:
    if call.argument:
        call.session.set_name(call.argument)
    name = call.session.name
    call.ui.notify("info", f"session name: {name}" if name else "the session has no name")


async def _session(call: CommandCall) -> None:
    await call.session.count_stored()
    session = call.session
    facts = {
        "file": session.store.path,
        "id": session.session_id,
        "name": session.name,
        "directory": session.cwd,
        "model": session.model.full_name,
        "thinkingLevel": session.thinking_level,
        **as_data(session.stats()),
        "context": session.context_usage(),
        "compactions": session.compactions(),
    }
    show(call.ui, "Session", session_text(session), facts)


def session_text(session: AgentSession) -> str:
    """The facts of a session as lines of plain text."""
    stats: SessionStats = session.stats()
    context = session.context_usage()
    usage = stats.usage
    rows = [
        ("file", session.store.path or "none (this session is not saved)"),
        ("id", session.session_id),
        ("name", session.name or "-"),
        ("directory", session.cwd),
        ("model", session.model.full_name),
        ("entries", str(stats.entries)),
    ]
    rows += [(f"  {role}", str(count)) for role, count in sorted(stats.messages.items())]
    rows += [
        ("tokens in", f"{usage.input or 0:,}"),
        ("tokens out", f"{usage.output or 0:,}"),
        ("cache read", f"{usage.cache_read or 0:,}"),
        ("cache write", f"{usage.cache_write or 0:,}"),
        ("cost", f"${usage.cost.total:.4f}"),
    ]
    rows += [
        (f"  {name}", f"${dollars:.4f}") for name, dollars in sorted(stats.cost_by_model.items())
    ]
    mark = "about " if context.estimated else ""
    rows.append(
        ("context", f"{mark}{context.tokens:,} of {context.window:,} ({context.percent:.1f} %)")
    )
    rows += compaction_rows(session.compactions())
    return table(rows)


async def _copy(call: CommandCall) -> None:
    answer = call.session.last_answer
    if answer is None or not answer.text:
        raise UsageError("there is no answer to copy yet")
    call.ui.copy(answer.text)
    call.ui.notify("info", f"copied the last answer ({len(answer.text):,} characters)")


async def _hotkeys(call: CommandCall) -> None:
    call.ui.show("Keys", table(call.ui.key_rows()))


async def _quit(call: CommandCall) -> None:
    call.ui.quit()
