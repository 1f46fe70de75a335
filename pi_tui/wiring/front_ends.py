"""Starts one front end with the parts it needs."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from pi_tui.agent.session import AgentSession
from pi_tui.commands.builtin import builtin_registry
from pi_tui.commands.registry import CommandRegistry
from pi_tui.commands.session_opening import go_to_answered, open_asking
from pi_tui.commands.sessions import session_commands
from pi_tui.commands.ui import CommandUI
from pi_tui.core.errors import ModelError, PiTuiError, SessionLockedError, SettingsError, UsageError
from pi_tui.core.protocols import OpenedSession
from pi_tui.export.exporter import FileExporter
from pi_tui.wiring.agent import (
    Prepared,
    prepare_or_close,
    refuse_wrong_arguments,
    settings_notice,
    use_local_model,
)
from pi_tui.wiring.given_key import use_given_key
from pi_tui.wiring.sessions import Sessions
from pi_tui.wiring.start import Start, say

if TYPE_CHECKING:
    from pi_tui.headless.inputs import Prompt
    from pi_tui.launch_options import LaunchOptions
    from pi_tui.resources.themes import ThemeColours
    from pi_tui.tui.options import StartupLine

NO_MODEL = (
    "no model is set up: this is the scripted demo. Say `hi`; `connect` tells how to use a real "
    "one."
)


def _registry(start: Start, sessions: Sessions) -> CommandRegistry:
    registry = builtin_registry()
    for command in session_commands(sessions.library(), FileExporter(start.secrets)):
        registry.add(command)
    return registry


def _prompts(start: Start, *, piped: bool) -> tuple[tuple[Prompt, ...], tuple[str, ...]]:
    from pi_tui.headless.inputs import compose_prompts, read_file_arguments, read_piped

    files = read_file_arguments(start.options.files, start.environment.expand)
    text = None
    if piped and sys.stdin is not None and not sys.stdin.isatty():
        text = read_piped(sys.stdin.buffer, on_waiting=lambda: say("waiting for standard input"))
    notices = (*files.notices, *(text.notices if text is not None else ()))
    return compose_prompts(start.options.messages, text, files), notices


# ---------------------------------------------------------------- without a screen


def list_models(start: Start) -> int:
    """Print the models that can be used now."""
    from pi_tui.core.numbers import compact_count

    use_given_key(start)
    asyncio.run(start.models.probe_local())
    query = start.options.model_query
    for problem in start.models.problems:
        say(problem.text)
    for error in start.models.without_keys():
        say(error.text)
    models = start.models.search(query, only_available=True)
    if not models:
        why = f"No model that can be used fits {query!r}." if query else "No model can be used."
        say(f"{why} Set a key such as ANTHROPIC_API_KEY, or write models.json (see the README).")
        return 1
    width = max(len(model.full_name) for model in models)
    for model in models:
        thinking = "  thinking" if model.reasoning else ""
        window = compact_count(model.context_window)
        sys.stdout.write(f"{model.full_name:<{width}}  {window:>5} window{thinking}\n")
    return 0


def doctor(options: LaunchOptions) -> int:
    """Report what is odd in a session file; write a repaired copy when asked."""
    from pi_tui.core.sanitise import sanitise
    from pi_tui.storage.doctor import examine, write_repaired

    file, target = options.doctor_file or "", options.repair_to
    report = examine(file) if target is None else write_repaired(file, target)
    sys.stdout.write(f"{sanitise(report.text())}\n")
    if target is not None:
        sys.stdout.write(f"A repaired copy was written to {sanitise(target)}.\n")
    return 0 if report.sound else 1


def headless(start: Start) -> int:
    """Print mode and JSON mode."""
    from pi_tui.headless.commands import HeadlessCommands, HeadlessUI
    from pi_tui.headless.json_mode import EarlierEvents, run_json
    from pi_tui.headless.print_mode import run_print

    if start.options.resume:
        raise UsageError("--resume needs the screen; use --session ID or --continue here")
    prompts, notices = _prompts(start, piped=True)
    sessions = Sessions(start)
    refuse_wrong_arguments(start)
    path = sessions.asked_for()
    opened = sessions.create() if path is None else sessions.open(path)
    earlier = EarlierEvents()
    prepared = prepare_or_close(start, sessions, opened, earlier)
    registry = _registry(start, sessions)

    async def run() -> int:
        session = prepared.session
        try:
            if prepared.choice.is_fallback and not await use_local_model(start, session):
                _refuse_demo_for_a_mistake(prepared)
            for notice in (*prepared.notices, *notices):
                say(notice)
            if session.model.api == "demo":
                say("no model is set up, so the scripted demo answers; see --list-models")

            def commands(ui: HeadlessUI) -> HeadlessCommands:
                return HeadlessCommands(registry, session, ui)

            if start.options.mode == "json":
                code = await run_json(
                    session, prompts, sys.stdout, sys.stderr, commands, earlier=earlier
                )
            else:
                earlier.take()
                code = await run_print(session, prompts, sys.stdout, sys.stderr, commands)
        finally:
            saved = await _close(session)
        return code if saved else code or 1

    return asyncio.run(run())


async def _close(session: AgentSession) -> bool:
    """Close and say what is to be known; False when the session is not in its own file."""
    store = session.store
    path = store.path
    for line in await session.close():
        say(line)
    return store.path == path and not store.pending


def _refuse_demo_for_a_mistake(prepared: Prepared) -> None:
    """Without a screen, a model that was set up wrongly must not look like an answer."""
    if prepared.choice.notice:
        raise ModelError(prepared.choice.notice)


# ---------------------------------------------------------------- the screen


def interactive(start: Start) -> int:
    """The full-screen program."""
    from pi_tui.tui.keys import ACTIONS
    from pi_tui.tui.options import StartupLine, TuiOptions
    from pi_tui.tui.run import run_tui

    prompts: tuple[Prompt, ...] = ()
    notices: tuple[str, ...] = ()
    if start.options.messages or start.options.files:
        prompts, notices = _prompts(start, piped=False)
    sessions = Sessions(start)
    refuse_wrong_arguments(start)
    opened, ask_about = _open_at_start(sessions)
    prepared = prepare_or_close(start, sessions, opened)
    session = prepared.session
    registry = _registry(start, sessions)
    keys, key_problems = _keybindings(start, ACTIONS)
    theme, theme_problem = _theme(start)
    warnings = (*prepared.notices, *notices, *key_problems, theme_problem)
    settings, environment = start.loaded.settings, start.environment

    resumed = len(session.tree) > 0

    async def after_paint(ui: CommandUI) -> None:
        for text in warnings if resumed else ():
            if text:  # above a long conversation nobody would see it
                ui.notify("warning", text)
        if ask_about is not None:
            await _resume_asking(ask_about, session, sessions, ui)
        elif start.options.resume:
            await registry.run("/resume", session, ui)
        for number, prompt in enumerate(prompts):
            session.submit(prompt.text, "followUp" if number else "steer", prompt.images)
        if prepared.choice.is_fallback and session.model.api == "demo":
            await _offer_local_model(start, session, ui)

    options = TuiOptions(
        theme=theme,
        keybindings=keys,
        home=environment.home_of_cwd,
        startup=(
            *_welcome(start, prepared),
            *(StartupLine(text, "warning") for text in warnings if text and not resumed),
        ),
        double_escape=settings.double_escape_action,
        tree_filter=settings.tree_filter_mode,
        hide_thinking=settings.hide_thinking_block,
        completion_rows=settings.autocomplete_max_visible,
        editor_command=settings.external_editor or environment.editor or "",
        auto_compaction=settings.compaction.enabled,
        remote=bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY")),
        inside_tmux=bool(environment.get("TMUX")),
        secrets=start.secrets,
        after_paint=after_paint,
        resume_reference=lambda held: sessions.reference(held.store.path, held.session_id),
    )
    return run_tui(session, registry, options)


def _open_at_start(sessions: Sessions) -> tuple[OpenedSession, str | None]:
    """The session to begin with, and the path of one that needs a question first."""
    path = sessions.asked_for()
    if path is None:
        return sessions.create(), None
    try:
        return sessions.open(path), None
    except (SessionLockedError, UsageError):
        # Asked on the screen, where the answers can be explained.
        return sessions.create(), path


async def _resume_asking(
    path: str, session: AgentSession, sessions: Sessions, ui: CommandUI
) -> None:
    try:
        answered = await open_asking(path, sessions.library(), ui)
        if answered is None:
            ui.notify("info", "the session was not opened; this is a new one")
            return
        await go_to_answered(session, answered, ui)
    except PiTuiError as error:
        ui.notify("error", error.text)


async def _offer_local_model(start: Start, session: AgentSession, ui: CommandUI) -> None:
    """Use a local server as long as nothing was said to the demo."""
    unused = len(session.tree) == 0 and session.activity == "idle"
    if unused and await use_local_model(start, session):
        ui.notify("info", f"model: {session.model.full_name} (found on this machine)")


def _welcome(start: Start, prepared: Prepared) -> list[StartupLine]:
    from pi_tui import __version__
    from pi_tui.tui.options import StartupLine

    quiet = start.loaded.settings.quiet_startup
    lines = []
    if quiet is not True:
        text = f"pi-tui {__version__} · /help lists the commands, /hotkeys the keys"
        lines.append(StartupLine(text))
    if prepared.context_files and not quiet:
        shown = [start.environment.shorten_home(file.path) for file in prepared.context_files]
        lines.append(StartupLine(f"instructions: {', '.join(shown)}"))
    if prepared.choice.is_fallback:
        lines.append(StartupLine(NO_MODEL, kind="model"))  # until one is found or chosen
    return lines


def _keybindings(start: Start, known: frozenset[str]) -> tuple[dict[str, object], tuple[str, ...]]:
    from pi_tui.config.keybindings import load_keybindings

    loaded = load_keybindings(start.environment.directories.keybindings_file, known)
    return dict(loaded.bindings), tuple(settings_notice(p) for p in loaded.problems)


def _theme(start: Start) -> tuple[ThemeColours | None, str]:
    """The chosen theme; None for the terminal's own colours. The second is what was wrong."""
    from pi_tui.resources.themes import load_theme, theme_name

    dark = not (start.environment.get("COLORFGBG") or "").endswith((";15", ";7"))
    name = theme_name(start.loaded.settings.theme, terminal_is_dark=dark)
    try:
        return load_theme(name, (start.environment.directories.themes,)), ""
    except SettingsError as error:
        return None, error.text
