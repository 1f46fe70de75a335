"""A log of compactions for people who look for a fault: one JSON object per line.

Subscribe an instance to a session. It writes sizes, times and outcomes, and the words of errors;
summaries only when asked for, and never messages. It must not disturb the session: a log that
cannot be written ends itself and says why in `failure`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
    """A listener for `AgentSession.subscribe` that appends to a file.

    `texts`: also write the summaries. `now_ms`: Unix milliseconds, the system's by default.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        texts: bool = False,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._path = Path(path)
        self._texts = texts
        self._now_ms = now_ms or SystemClock().now_ms
        self._part = 0
        self.failure: OSError | None = None

    def __call__(self, event: Event) -> None:
        """Write what the event tells, if it is about compactions or summaries."""
        if self.failure is not None:
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
            with self._path.open("ab") as file:
                file.write(line)
        except OSError as error:
            self.failure = error
