"""Gathers what the footer shows: numbers of the session and the git branch.

What the stored entries of a session used is counted in the background, again for each session that
is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from pi_tui.agent.accounting import ContextUsage
from pi_tui.agent.session import AgentSession
from pi_tui.core.errors import StorageError
from pi_tui.core.events import Event, SessionReplaced
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
        self._unsubscribe: Callable[[], None] | None = None

    def follow(
        self,
        spawn: Callable[[Coroutine[Any, Any, object]], object],
        changed: Callable[[], None],
        problem: Callable[[str], None],
    ) -> None:
        """Count what is stored now, and again when another session is opened; then `changed`.

        `problem` is told in words of entries that cannot be read.
        """

        async def count() -> None:
            try:
                await self._session.count_stored(gently=True)
            except StorageError as error:
                problem(f"the totals are incomplete: {error.text}")
            changed()

        def listen(event: Event) -> None:
            if isinstance(event, SessionReplaced):
                spawn(count())

        self._unsubscribe = self._session.subscribe(listen)
        spawn(count())

    def stop(self) -> None:
        """Follow the session no longer."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _context_usage(self) -> ContextUsage | None:
        try:
            return self._session.context_usage()
        except StorageError:
            return None  # not known: the next request says why, a number at the edge cannot

    def facts(self) -> FooterFacts:
        """The present facts."""
        session = self._session
        model = session.model
        usage = session.stats().usage
        context = self._context_usage() if self.numbers_ready else None
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
            model_id=model.id,
        )
