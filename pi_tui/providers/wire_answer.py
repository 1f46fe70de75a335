"""The seam between the clients on HTTP and the readers of wire formats. Pure; no HTTP here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from pi_tui.core.messages import JSON
from pi_tui.core.streaming import StreamEvent

END_MARK: Final = object()
"""What the server's last word is decoded to."""


class WireAnswer(Protocol):
    """Turns the events of one answer, in one wire format, into ours."""

    @property
    def has_finish(self) -> bool:
        """True once the server said why the answer ended."""
        ...

    def decode(self, name: str, data: str) -> JSON:
        """Read one event of the stream; `END_MARK` for the last. Raises ValueError."""
        ...

    def feed(self, event: JSON) -> Iterator[StreamEvent]:
        """Take in one decoded event."""
        ...

    def finish(self, *, ended_by_server: bool) -> Iterator[StreamEvent]:
        """Yield what is left and the end. Raises ProviderError for an answer that is not whole."""
        ...
