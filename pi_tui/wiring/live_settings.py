"""The settings of a run, read again when their file changes, for what is decided anew each time.

Whether to compact is looked up before every request and what a summary is made with before every
summary, so a change holds from the next one on. What else stands in the file holds from the next
start. A check costs one stat of a local file, as appending to the session does; the file is read
only when that shows a change.
"""

from __future__ import annotations

from collections.abc import Callable

from pi_tui.agent.assembly import SummaryPreferences
from pi_tui.config.compaction import compaction_settings
from pi_tui.config.paths import Environment
from pi_tui.config.settings import LoadedSettings, load_settings
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.models import Model


def _nobody(text: str) -> None:
    """The listener before there is a session to tell."""


class LiveSettings:
    """`loaded` is what was read last and could be used; `warn` is told why something was not."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.warn: Callable[[str], None] = _nobody
        # Looked at before it is read: what changes in between is then noticed at the next check.
        self._seen = self._look()
        self.loaded: LoadedSettings = load_settings(environment)

    def compaction(self, model: Model) -> CompactionSettings:
        """The present numbers for a model. Raises SettingsError when one that counts is wrong."""
        self.refresh()
        return compaction_settings(self.loaded, model.provider, model.id)

    def summaries(self) -> SummaryPreferences:
        """What is set now about who writes summaries, and about those of branches."""
        self.refresh()
        settings = self.loaded.settings
        return SummaryPreferences(
            model=settings.compaction.model,
            branch_reserve_tokens=settings.branch_summary.reserve_tokens,
            branch_skip_prompt=settings.branch_summary.skip_prompt,
        )

    def refresh(self) -> None:
        """Read the file again if it changed; one that cannot be read leaves everything as it is."""
        found = self._look()
        if found == self._seen:
            return
        self._seen = found
        loaded = load_settings(self._environment)
        if loaded.unreadable:
            problem = loaded.problems[0].message.rstrip(".")
            self.warn(
                f"{problem}. The settings that were read before stay in use until that is mended."
            )
            return
        self.loaded = loaded

    def _look(self) -> tuple[int, ...] | str:
        """What tells one state of the file from another."""
        try:
            status = self._environment.directories.settings_file.stat()
        except OSError as error:
            return type(error).__name__
        return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns
