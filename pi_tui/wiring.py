"""The composition root: the only file that names concrete classes of all rooms.

It reads the environment and the settings once, makes the parts, and hands them to one front end.
Errors that stop the start are worded here, once, on standard error; nothing has been changed then.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from pi_tui.agent.assembly import AgentSettings, AgentWorld
from pi_tui.agent.retry_policy import RetryPolicy
from pi_tui.agent.session import AgentSession
from pi_tui.agent.stored_choice import stored_choice
from pi_tui.agent.system_clock import RandomIds, SystemClock
from pi_tui.commands.builtin import builtin_registry
from pi_tui.config.compaction import compaction_settings
from pi_tui.config.paths import Environment, read_environment
from pi_tui.config.settings import LoadedSettings, load_settings, session_directory
from pi_tui.core.entries import SessionHeader, iso_timestamp
from pi_tui.core.errors import (
    ModelError,
    PiTuiError,
    SessionNotFoundError,
    SettingsError,
    UsageError,
)
from pi_tui.core.messages import THINKING_LEVELS, ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.protocols import OpenedSession, TokenEstimator, Tool
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.registry import ModelRegistry, open_registry
from pi_tui.providers.start_model import find_local_model, start_model
from pi_tui.resources.context_files import (
    ContextFile,
    load_context_files,
    load_prompt_files,
    resolve_prompt_argument,
)
from pi_tui.resources.system_prompt import PromptPlace, build_system_prompt
from pi_tui.storage.jsonl import create_session, open_session
from pi_tui.storage.listing import find_session, latest_session
from pi_tui.storage.memory import MemoryStore
from pi_tui.tools.builtin import ALL_TOOLS, builtin_tools
from pi_tui.tools.local_shell import LocalShell
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.runner import ProcessRunner

if TYPE_CHECKING:
    from pi_tui.headless.inputs import Prompt
    from pi_tui.launch_options import LaunchOptions
    from pi_tui.resources.themes import ThemeColours

EXIT_ERROR = 1
EXIT_USAGE = 2


def launch(options: LaunchOptions) -> int:
    """Run one front end; returns the exit code."""
    try:
        start = _Start.read(options)
        if options.mode == "list-models":
            return _list_models(start)
        if options.mode == "interactive":
            return _interactive(start)
        return _headless(start)
    except PiTuiError as error:
        _say(f"{error.message} {error.hint or ''}".rstrip())
        usage = isinstance(error, UsageError | ModelError | SessionNotFoundError)
        return EXIT_USAGE if usage else EXIT_ERROR


def _say(text: str) -> None:
    from pi_tui.core.sanitise import sanitise

    sys.stderr.write(f"pi-tui: {sanitise(text)}\n")
    sys.stderr.flush()


class _Start(Struct, frozen=True):
    """What every front end starts from."""

    options: LaunchOptions
    environment: Environment
    loaded: LoadedSettings
    models: ModelRegistry

    @classmethod
    def read(cls, options: LaunchOptions) -> _Start:
        environment = read_environment()
        directories = environment.directories
        models = open_registry(
            environment.variables,
            models_path=directories.models_file,
            cache_dir=directories.cache,
        )
        return cls(options, environment, load_settings(environment), models)

    @property
    def cwd(self) -> str:
        return str(self.environment.cwd)

    @property
    def sessions(self) -> Path:
        return session_directory(self.environment, self.loaded, self.options.session_dir)

    def secrets(self) -> tuple[str, ...]:
        """Values that must not appear in a report of a fault."""
        marks = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
        return tuple(
            value
            for name, value in self.environment.variables.items()
            if len(value) >= 8 and any(mark in name.upper() for mark in marks)
        )


# ---------------------------------------------------------------- the session


class _Sessions:
    """Makes and opens session files of this run."""

    def __init__(self, start: _Start) -> None:
        self._start = start
        self._ids = RandomIds()

    def create(self, parent: str | None = None) -> OpenedSession:
        """A new session in the present directory; nothing is on disk before its first entry."""
        header = SessionHeader(
            id=self._ids.session_id(),
            timestamp=iso_timestamp(SystemClock().now_ms()),
            cwd=self._start.cwd,
        )
        if self._start.options.no_session:
            return OpenedSession(MemoryStore(header), ())
        return OpenedSession(create_session(self._start.sessions, header), ())

    def open(self) -> OpenedSession:
        """The session the command line asks for, else a new one."""
        options = self._start.options
        if options.session is not None:
            reference = self._expanded(options.session)
            return open_session(find_session(self._start.sessions, reference))
        if options.continue_latest:
            path = latest_session(self._start.sessions, self._start.cwd)
            if path is None:
                raise SessionNotFoundError(
                    f"No session belongs to {self.shown_cwd}.",
                    hint="Start without --continue for a new one, or open one of another directory "
                    "with --session ID.",
                )
            return open_session(path)
        return self.create()

    def _expanded(self, reference: str) -> str:
        looks_like_path = "/" in reference or reference.endswith(".jsonl")
        return str(self._start.environment.expand(reference)) if looks_like_path else reference

    @property
    def shown_cwd(self) -> str:
        return self._start.environment.shorten_home(self._start.cwd)

    def moved_notice(self, opened: OpenedSession) -> str:
        """What to tell when a session was made in another directory; "" when it was not."""
        recorded = opened.store.header.cwd
        if not recorded or recorded == self._start.cwd:
            return ""
        gone = "" if Path(recorded).is_dir() else ", which does not exist any more"
        was = self._start.environment.shorten_home(recorded)
        return (
            f"this session was made in {was}{gone}; tools now run in {self.shown_cwd}, and the "
            "model is told so"
        )


class _Choice(Struct, frozen=True):
    """The model and level to start with, and what is to be told about the choice."""

    model: Model
    level: ThinkingLevel
    is_fallback: bool
    notice: str = ""


def _choose_model(start: _Start, opened: OpenedSession) -> _Choice:
    options, settings = start.options, start.loaded.settings
    stored = stored_choice(opened)
    notice = ""
    if options.model is None and stored.model is not None:
        model = start.models.find(stored.model)
        if model is not None and not start.models.api_key_missing(model):
            return _Choice(model, _level(start, model, None, stored.thinking_level), False)
        notice = f"the session's model {stored.model} cannot be used now. "
    chosen = start_model(
        start.models,
        reference=options.model or "",
        default_provider=settings.default_provider or "",
        default_model=settings.default_model or "",
    )
    if notice:
        notice += f"Going on with {chosen.model.full_name}. "
    level = _level(start, chosen.model, chosen.thinking_level, stored.thinking_level)
    return _Choice(chosen.model, level, chosen.source == "demo", f"{notice}{chosen.notice}".strip())


def _level(
    start: _Start, model: Model, named: ThinkingLevel | None, stored: str | None
) -> ThinkingLevel:
    settings = start.loaded.settings
    wanted = (
        start.options.thinking
        or named
        or stored
        or settings.model_thinking_levels.get(model.full_name)
        or settings.default_thinking_level
    )
    return next((level for level in THINKING_LEVELS if level == wanted), "off")


def _estimator(loaded: LoadedSettings) -> TokenEstimator:
    return CharsEstimator(cjk=loaded.settings.compaction.estimator != "chars")


def _agent_settings(start: _Start, choice: _Choice) -> AgentSettings:
    settings, loaded = start.loaded.settings, start.loaded
    retry = settings.retry
    return AgentSettings(
        model=choice.model,
        thinking_level=choice.level,
        steering_mode=settings.steering_mode,
        follow_up_mode=settings.follow_up_mode,
        retry=RetryPolicy(
            enabled=retry.enabled,
            max_retries=retry.max_retries,
            base_delay_ms=retry.base_delay_ms,
            max_delay_ms=retry.max_agent_delay_ms,
        ),
        compaction=lambda model: compaction_settings(loaded, model.provider, model.id),
        summary_model=settings.compaction.model,
    )


class _Prepared(Struct, frozen=True):
    """A session ready for a front end. `notices` are told before anything else."""

    session: AgentSession
    choice: _Choice
    notices: tuple[str, ...]
    context_files: tuple[ContextFile, ...]


def _prepare(start: _Start) -> _Prepared:
    sessions = _Sessions(start)
    opened = sessions.open()
    try:
        return _prepare_opened(start, sessions, opened)
    except PiTuiError:
        opened.store.close()
        raise


def _prepare_opened(start: _Start, sessions: _Sessions, opened: OpenedSession) -> _Prepared:
    choice = _choose_model(start, opened)
    settings, environment = start.loaded.settings, start.environment
    tool_options = ToolOptions(
        environment=dict(environment.variables),
        spill_dir=str(environment.directories.cache / "outputs"),
        shell_path=settings.shell_path,
        shell_command_prefix=settings.shell_command_prefix,
    )
    runner = ProcessRunner(tool_options)
    tools = _chosen_tools(start, builtin_tools(tool_options, runner))
    context = load_context_files(environment.directories.config, environment.cwd)
    prompt = load_prompt_files(environment.directories.config)
    system = _prompt_text(start, start.options.system_prompt)
    if system is None and prompt.system is not None:
        system = prompt.system.text
    additions = [file.text for file in prompt.append]
    additions += [_prompt_text(start, a) or "" for a in start.options.append_system_prompt]
    place = PromptPlace(
        cwd=start.cwd, date=date.today().isoformat(), platform=sys.platform, shell="bash"
    )

    def sections(active: Sequence[Tool]) -> dict[str, str]:
        return build_system_prompt(
            [(tool.declaration.name, tool.prompt_line) for tool in active],
            context.files,
            place,
            system_prompt=system,
            append=additions,
        )

    world = AgentWorld(
        models=start.models,
        tools=tools,
        shell=LocalShell(tool_options, runner),
        sections=sections,
        clock=SystemClock(),
        ids=RandomIds(),
        estimator=_estimator(start.loaded),
        sessions=sessions,
        cwd=start.cwd,
        rescue_directory=str(Path(tempfile.gettempdir()) / f"pi-tui-rescued-{os.getuid()}"),
        on_close=start.models.close,
    )
    session = AgentSession(world, opened, _agent_settings(start, choice))
    if start.options.name:
        session.set_name(start.options.name)
    notices = [
        *(_settings_notice(problem) for problem in start.loaded.problems),
        *opened.notices,
        sessions.moved_notice(opened) if len(session.tree) else "",
        choice.notice,
        *context.notices,
        *prompt.notices,
    ]
    return _Prepared(session, choice, tuple(n for n in notices if n), context.files)


def _settings_notice(problem: SettingsError) -> str:
    return f"{problem.message} {problem.hint or ''}".rstrip()


def _prompt_text(start: _Start, argument: str | None) -> str | None:
    if argument is None:
        return None
    try:
        return resolve_prompt_argument(argument, start.environment.cwd)
    except OSError as error:
        raise UsageError(f"the file {argument} cannot be read: {error.strerror}") from error


def _chosen_tools(start: _Start, built: dict[str, Tool]) -> tuple[Tool, ...]:
    """The tools of `--tools` or the setting: plain names replace, `+x` and `-x` adjust."""
    names = list(start.loaded.settings.default_tools)
    if start.options.tools is not None:
        asked = [name.strip() for name in start.options.tools.split(",") if name.strip()]
        plain = [name for name in asked if name[0] not in "+-"]
        names = plain if plain or not asked else names
        for change in (name for name in asked if name[0] in "+-"):
            if change[0] == "+" and change[1:] not in names:
                names.append(change[1:])
            elif change[0] == "-":
                names = [name for name in names if name != change[1:]]
    if "*" in names:
        names = list(ALL_TOOLS)
    for name in names:
        if name not in built:
            near = difflib.get_close_matches(name, built, n=1)
            guess = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"there is no tool called {name!r}", hint=f"{guess}Tools: {', '.join(built)}."
            )
    return tuple(built[name] for name in dict.fromkeys(names))


# ---------------------------------------------------------------- front ends


def _list_models(start: _Start) -> int:
    from pi_tui.core.numbers import compact_count

    query = start.options.model_query
    models = start.models.search(query, only_available=True)
    if not models:
        why = f"No model that can be used fits {query!r}." if query else "No model can be used."
        _say(f"{why} Set a key such as ANTHROPIC_API_KEY, or write models.json (see the README).")
        return EXIT_ERROR
    width = max(len(model.full_name) for model in models)
    for model in models:
        thinking = "  thinking" if model.reasoning else ""
        window = compact_count(model.context_window)
        sys.stdout.write(f"{model.full_name:<{width}}  {window:>5} window{thinking}\n")
    return 0


def _prompts(start: _Start, *, piped: bool) -> tuple[tuple[Prompt, ...], tuple[str, ...]]:
    from pi_tui.headless.inputs import compose_prompts, read_file_arguments, read_piped

    files = read_file_arguments(start.options.files, start.environment.expand)
    text = None
    if piped and sys.stdin is not None and not sys.stdin.isatty():
        text = read_piped(sys.stdin.buffer)
    return compose_prompts(start.options.messages, text, files), files.notices


def _headless(start: _Start) -> int:
    from pi_tui.headless.json_mode import run_json
    from pi_tui.headless.print_mode import run_print

    prompts, notices = _prompts(start, piped=True)
    prepared = _prepare(start)

    async def run() -> int:
        session = prepared.session
        try:
            if prepared.choice.is_fallback:
                await _look_for_local_model(start, session)
            for notice in (*prepared.notices, *notices):
                _say(notice)
            if session.model.api == "demo":
                _say("no model is set up, so the scripted demo answers; see --list-models")
            mode = run_json if start.options.mode == "json" else run_print
            return await mode(session, prompts, sys.stdout, sys.stderr)
        finally:
            for line in await session.close():
                _say(line)

    return asyncio.run(run())


async def _look_for_local_model(start: _Start, session: AgentSession) -> bool:
    """Use a server on this machine when nothing else is set up; True when one was found."""
    model = await find_local_model(start.models)
    if model is None:
        return False
    session.set_model(model)
    return True


def _interactive(start: _Start) -> int:
    from pi_tui.tui.app import run_tui
    from pi_tui.tui.options import StartupLine, TuiOptions

    prompts: tuple[Prompt, ...] = ()
    notices: tuple[str, ...] = ()
    if start.options.messages or start.options.files:
        prompts, notices = _prompts(start, piped=False)
    prepared = _prepare(start)
    session = prepared.session
    keys, key_problems = _keybindings(start)
    warnings = (*prepared.notices, *notices, *key_problems)
    theme, theme_problem = _theme(start)
    if theme_problem:
        warnings = (*warnings, theme_problem)
    settings, environment = start.loaded.settings, start.environment

    async def after_paint() -> None:
        for number, prompt in enumerate(prompts):
            session.submit(prompt.text, "followUp" if number else "steer", prompt.images)
        if prepared.choice.is_fallback and session.model.api == "demo":
            await _offer_local_model(start, session)

    options = TuiOptions(
        theme=theme,
        keybindings=keys,
        home=str(environment.home),
        startup=(
            *(StartupLine(line) for line in _welcome(prepared, environment)),
            *(StartupLine(text, "warning") for text in warnings),
        ),
        double_escape=settings.double_escape_action,
        hide_thinking=settings.hide_thinking_block,
        completion_rows=settings.autocomplete_max_visible,
        editor_command=settings.external_editor or environment.editor or "",
        remote=bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY")),
        inside_tmux=bool(environment.get("TMUX")),
        secrets=start.secrets(),
        after_paint=after_paint,
    )
    return run_tui(session, builtin_registry(), options)


async def _offer_local_model(start: _Start, session: AgentSession) -> None:
    before = session.activity, len(session.tree)
    model = await find_local_model(start.models)
    if model is not None and (session.activity, len(session.tree)) == before:
        session.set_model(model)


def _welcome(prepared: _Prepared, environment: Environment) -> list[str]:
    from pi_tui import __version__

    lines = [f"pi-tui {__version__} · /help lists the commands, /hotkeys the keys"]
    if prepared.context_files:
        shown = ", ".join(environment.shorten_home(file.path) for file in prepared.context_files)
        lines.append(f"instructions: {shown}")
    if prepared.choice.is_fallback:
        lines.append(
            "no model is set up: this is the scripted demo. Say `hi`; `connect` tells how to use a "
            "real one."
        )
    return lines


def _keybindings(start: _Start) -> tuple[dict[str, object], tuple[str, ...]]:
    from pi_tui.config.keybindings import load_keybindings

    loaded = load_keybindings(start.environment.directories.keybindings_file)
    return dict(loaded.bindings), tuple(_settings_notice(p) for p in loaded.problems)


def _theme(start: _Start) -> tuple[ThemeColours | None, str]:
    """The chosen theme; None for the terminal's own colours. The second is what was wrong."""
    from pi_tui.resources.themes import load_theme, theme_name

    dark = not (start.environment.get("COLORFGBG") or "").endswith((";15", ";7"))
    name = theme_name(start.loaded.settings.theme, terminal_is_dark=dark)
    try:
        return load_theme(name, (start.environment.directories.themes,)), ""
    except SettingsError as error:
        return None, f"{error.message} {error.hint or ''}".rstrip()
