"""A log of compactions for people who look for a fault: one JSON object per line.

Subscribe an instance to a session. It writes sizes, times and outcomes, and the words of errors;
summaries only when asked for, and never messages. It must not disturb the session: a log that
cannot be written ends itself and says so once.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from pi_tui.agent.system_clock import SystemClock
from pi_tui.core.entries import iso_timestamp
from pi_tui.core.events import (
    CompactionEnd,
    CompactionProgress,
    CompactionStart,
    Event,
    SessionReplaced,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
    event_to_data,
)
from pi_tui.core.messages import JSON

_LOGGED = (
    CompactionStart,
    CompactionEnd,
    SummarizationRetryScheduled,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SessionReplaced,
)


class CompactionLog:
    """A listener for `AgentSession.subscribe` that appends to a file, readable by its owner alone.

    Raises OSError when the file cannot be opened. `tell` gets one sentence when it cannot be
    written later. `texts`: also write the summaries. `now_ms`: Unix milliseconds, the system's by
    default.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tell: Callable[[str], None],
        *,
        texts: bool = False,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._tell = tell
        self._texts = texts
        self._now_ms = now_ms or SystemClock().now_ms
        self._part = 0
        self._ended = False
        os.close(self._open())

    def __call__(self, event: Event) -> None:
        """Write what the event tells, if it is about compactions or summaries."""
        if self._ended:
            return
        if isinstance(event, CompactionProgress):
            if event.part != self._part:  # told again for each piece of text that arrives
                self._part = event.part
                self._write({"type": "part", "part": event.part, "parts": event.parts})
        elif isinstance(event, _LOGGED):
            self._part = 0 if isinstance(event, CompactionStart) else self._part
            self._write(self._facts(event))

    def _facts(self, event: Event) -> dict[str, JSON]:
        data = event_to_data(event)
        result = data.get("result")
        if isinstance(result, dict):
            summary = result.get("summary")
            result = {**result, "summaryChars": len(summary) if isinstance(summary, str) else 0}
            if not self._texts:
                del result["summary"]
            data["result"] = result
        return data

    def _write(self, facts: dict[str, JSON]) -> None:
        line = msgspec.json.encode({"time": iso_timestamp(self._now_ms()), **facts}) + b"\n"
        try:
            with os.fdopen(self._open(), "ab") as file:
                file.write(line)
        except OSError as error:
            self._ended = True
            why = error.strerror or error
            self._tell(f"the log {self._path} cannot be written any more ({why}); it ends here")

    def _open(self) -> int:
        """A descriptor that appends; a pipe nobody reads is an error instead of a wait."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)
