"""Makes the agent of a run: model, tools, system prompt, and the session it works on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct

from pi_tui.agent.assembly import AgentSettings, AgentWorld
from pi_tui.agent.bus import Listener
from pi_tui.agent.compaction_log import CompactionLog
from pi_tui.agent.retry_policy import RetryPolicy
from pi_tui.agent.session import AgentSession
from pi_tui.agent.stored_choice import stored_choice
from pi_tui.agent.system_clock import RandomIds, SystemClock
from pi_tui.config.unused import unused_settings
from pi_tui.core.errors import SettingsError, UsageError
from pi_tui.core.events import AgentStart, Event
from pi_tui.core.messages import THINKING_LEVELS, ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.protocols import OpenedSession, Tool
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.start_model import find_local_model, start_model
from pi_tui.providers.tiktoken_estimator import TiktokenEstimator, find_vocabulary
from pi_tui.resources.context_files import (
    ContextFile,
    load_context_files,
    load_prompt_files,
    resolve_prompt_argument,
)
from pi_tui.resources.system_prompt import PromptPlace, build_system_prompt
from pi_tui.tools.builtin import builtin_tools
from pi_tui.tools.local_shell import LocalShell
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.runner import ProcessRunner
from pi_tui.wiring.given_key import use_given_key
from pi_tui.wiring.secrecy import variables_for_commands
from pi_tui.wiring.tool_choice import start_tools, unknown_tool_notice

if TYPE_CHECKING:
    from pi_tui.core.protocols import TokenEstimator
    from pi_tui.wiring.sessions import Sessions
    from pi_tui.wiring.start import Start


class ModelStart(Struct, frozen=True):
    """The model and level to start with, and what is to be told about the choice."""

    model: Model
    level: ThinkingLevel
    is_fallback: bool
    notice: str = ""


def _choose_model(start: Start, opened: OpenedSession) -> ModelStart:
    options, settings = start.options, start.loaded.settings
    stored = stored_choice(opened)
    use_given_key(start, stored.model or "")
    notice = ""
    if options.model is None and stored.model is not None:
        model = start.models.find(stored.model)
        if model is not None and not start.models.api_key_missing(model):
            return ModelStart(model, _level(start, model, None, stored.thinking_level), False)
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
    told = f"{notice}{chosen.notice} {_thinking_notice(start, chosen.model)}".strip()
    return ModelStart(chosen.model, level, chosen.source == "demo", told)


def _thinking_notice(start: Start, model: Model) -> str:
    asked = start.options.thinking
    if asked in (None, "off") or model.reasoning or model.api == "demo":
        return ""
    return f"{model.full_name} has no thinking levels, so --thinking {asked} does nothing."


def _level(
    start: Start, model: Model, named: ThinkingLevel | None, stored: str | None
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


FULL_ENOUGH_TO_COUNT = 0.25
"""From this part of the window on it is worth loading a vocabulary to count tokens with."""


def _estimator(start: Start) -> TokenEstimator:
    wanted = start.loaded.settings.compaction.estimator
    if wanted == "chars":
        return CharsEstimator()
    file = find_vocabulary()
    if file is None:
        return CharsEstimator(cjk=True)
    estimator = TiktokenEstimator(file)
    if wanted == "tiktoken":
        estimator.start_loading()
    return estimator


def _load_vocabulary_when_it_matters(session: AgentSession, estimator: TokenEstimator) -> None:
    """A vocabulary costs memory, so short conversations do without one."""
    if not isinstance(estimator, TiktokenEstimator):
        return

    def listen(event: Event) -> None:
        if isinstance(event, AgentStart):
            usage = session.context_usage()
            if usage.tokens > usage.window * FULL_ENOUGH_TO_COUNT:
                estimator.start_loading()

    session.subscribe(listen)


def _agent_settings(start: Start, choice: ModelStart) -> AgentSettings:
    settings = start.loaded.settings
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
        compaction=start.live.compaction,
        summaries=start.live.summaries,
    )


async def use_local_model(start: Start, session: AgentSession) -> bool:
    """Use a server on this machine when nothing else is set up; False when none answers."""
    model = await find_local_model(start.models)
    if model is None:
        return False
    session.set_model(model)
    return True


def _compaction_log(start: Start, warn: Callable[[str], None]) -> CompactionLog | None:
    """The log of `--debug-log`. Raises UsageError when it cannot be opened."""
    asked = start.options.debug_log
    if asked is None:
        return None
    path = str(start.environment.expand(asked))
    try:
        return CompactionLog(path, warn)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"the log {asked} cannot be opened: {why}",
            hint="Give --debug-log a file in a directory that is there and yours.",
        ) from error


def refuse_wrong_arguments(start: Start) -> None:
    """Raise what `prepare` would refuse, before a session is opened: that may change its file.

    Raises UsageError and ModelError.
    """
    if start.options.model is not None:
        use_given_key(start)
        start_model(start.models, reference=start.options.model)
    start_tools(start.loaded.settings.default_tools, start.options.tools)
    for text in (start.options.system_prompt, *start.options.append_system_prompt):
        _prompt_text(start, text)
    _compaction_log(start, lambda text: None)


class Prepared(Struct, frozen=True):
    """A session ready for a front end. `notices` are told before anything else."""

    session: AgentSession
    choice: ModelStart
    notices: tuple[str, ...]
    context_files: tuple[ContextFile, ...]


def prepare_or_close(
    start: Start, sessions: Sessions, opened: OpenedSession, listener: Listener | None = None
) -> Prepared:
    """The same as `prepare`; whatever goes wrong, the session is closed and free for others."""
    try:
        return prepare(start, sessions, opened, listener)
    except BaseException:
        opened.store.close()
        raise


def prepare(
    start: Start, sessions: Sessions, opened: OpenedSession, listener: Listener | None = None
) -> Prepared:
    """Make the session object over an opened session; the caller closes it on an error.

    `listener` hears everything, also what is done to the session here.
    """
    choice = _choose_model(start, opened)
    settings, environment = start.loaded.settings, start.environment
    tool_options = ToolOptions(
        environment=variables_for_commands(
            environment.variables, start.models, keep_keys=settings.shell_keep_keys
        ),
        spill_dir=str(environment.directories.cache / "outputs"),
        shell_path=settings.shell_path,
        shell_command_prefix=settings.shell_command_prefix,
    )
    runner = ProcessRunner(tool_options)
    built = builtin_tools(tool_options, runner)
    chosen = start_tools(settings.default_tools, start.options.tools)
    tools = tuple(built[name] for name in chosen.names)
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

    estimator = _estimator(start)
    world = AgentWorld(
        models=start.models,
        tools=tools,
        shell=LocalShell(tool_options, runner),
        sections=sections,
        clock=SystemClock(),
        ids=RandomIds(),
        estimator=estimator,
        sessions=sessions,
        cwd=start.cwd,
        rescue_directory=start.rescue_directory,
        secrets=start.secrets,
        on_close=start.models.close,
    )
    session = AgentSession(world, opened, _agent_settings(start, choice))
    if listener is not None:
        session.subscribe(listener)
    start.live.warn = lambda text: session.tell("warning", text)
    _load_vocabulary_when_it_matters(session, estimator)
    log = _compaction_log(start, lambda text: session.tell("warning", text))
    if log is not None:
        session.subscribe(log)
    if start.options.name:
        session.set_name(start.options.name)
    tools_file = start.loaded.file_of(("defaultTools",))
    notices = [
        *(settings_notice(problem) for problem in start.loaded.problems),
        *(settings_notice(problem) for problem in start.models.problems),
        *unused_settings(start.loaded),
        *(unknown_tool_notice(tools_file, name) for name in chosen.unknown),
        *opened.notices,
        choice.notice,
        *context.notices,
        *prompt.notices,
    ]
    return Prepared(session, choice, tuple(n for n in notices if n), context.files)


def settings_notice(problem: SettingsError) -> str:
    """A wrong setting as one line."""
    return problem.text


def _prompt_text(start: Start, argument: str | None) -> str | None:
    if argument is None:
        return None
    try:
        return resolve_prompt_argument(argument, start.environment.cwd)
    except OSError as error:
        raise UsageError(f"the file {argument} cannot be read: {error.strerror}") from error
