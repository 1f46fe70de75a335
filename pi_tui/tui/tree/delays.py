"""Things to be done a little later, by name: asked for again, one waits anew."""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget


class Delays:
    """Timers of a widget. Times are seconds."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._waiting: dict[str, tuple[Timer, Callable[[], None]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._waiting

    def start(self, name: str, wait_s: float, work: Callable[[], None]) -> None:
        """Do the work after a while, and not what waited under this name before."""
        self.stop(name)

        def fire() -> None:
            self._waiting.pop(name, None)
            work()

        self._waiting[name] = self._widget.set_timer(max(0.0, wait_s), fire), work

    def stop(self, name: str) -> None:
        """Do not do it."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            waiting[0].stop()

    def stop_all(self) -> None:
        for name in tuple(self._waiting):
            self.stop(name)

    def do_now(self, name: str) -> bool:
        """Do at once what waits under a name; False when nothing does."""
        waiting = self._waiting.pop(name, None)
        if waiting is None:
            return False
        waiting[0].stop()
        waiting[1]()
        return True
