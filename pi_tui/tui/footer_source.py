"""Gathers what the footer shows: numbers of the session and the git branch."""

from __future__ import annotations

from pi_tui.agent.session import AgentSession
from pi_tui.tui.options import TuiOptions
from pi_tui.tui.view_state import FooterFacts, short_directory


class FooterSource:
    """Reads the session; what takes time is only read after `numbers_ready` is set."""

    def __init__(self, session: AgentSession, options: TuiOptions) -> None:
        self._session = session
        self._options = options
        self.branch: str | None = None
        self.show_provider = False
        self.numbers_ready = False

    def facts(self) -> FooterFacts:
        """The present facts."""
        session = self._session
        model = session.model
        usage = session.stats().usage
        context = session.context_usage() if self.numbers_ready else None
        return FooterFacts(
            directory=short_directory(session.cwd, self._options.home),
            branch=self.branch,
            session_name=session.name,
            input_tokens=usage.input or 0,
            output_tokens=usage.output or 0,
            cache_read_tokens=usage.cache_read or 0,
            cache_write_tokens=usage.cache_write or 0,
            cost=usage.cost.total,
            context_tokens=None if context is None else context.tokens,
            window=model.context_window if context is None else context.window,
            context_estimated=context is not None and context.estimated,
            model=model.full_name if self.show_provider else model.id,
            thinking=session.thinking_level if model.reasoning else None,
            auto_compaction=self._options.auto_compaction,
            unsaved_entries=session.store.pending,
            read_only=session.store.read_only,
        )
