"""Earlier prompts, walked with Up and Down; the draft that was being typed waits at the end.

Those of the conversation come and go with the branch that is looked at. Those typed in this run
stay, and are the newest, whichever branch they were typed on.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.tui.editor.buffer import EditorBuffer, Snapshot

_ENTRIES_KEPT = 1000


class PromptHistory:
    """Prompts, oldest first. Those typed in this run keep their collapsed pastes."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._path: list[str] = [entry for entry in entries if entry]
        self._typed: list[tuple[str | Snapshot, str]] = []
        self._entries: list[str | Snapshot] = []
        self._at: int | None = None
        self._draft: Snapshot | None = None
        self._join()

    def carry_over(self, before: PromptHistory) -> None:
        """Take over what was typed in this run, from the history of another branch."""
        self._typed = before._typed
        self._join()
        self.leave()

    def extend_back(self, entries: Iterable[str]) -> None:
        """Add prompts that are older than all others, oldest first."""
        before = len(self._entries)
        self._path[:0] = [entry for entry in entries if entry]
        self._join()
        if self._at is not None:
            self._at += len(self._entries) - before

    def add(self, entry: str | Snapshot, text: str = "") -> None:
        """Add the newest prompt; walking starts again from here.

        `text` is what a snapshot stands for, by which it is found again among those of a branch.
        """
        if not self._entries or self._entries[-1] != entry:
            self._typed.append((entry, entry if isinstance(entry, str) else text or entry.text))
            del self._typed[:-_ENTRIES_KEPT]
            self._join()
        self.leave()

    def _join(self) -> None:
        typed = {text for _, text in self._typed}
        self._entries = [text for text in self._path if text not in typed]
        self._entries += [entry for entry, _ in self._typed]

    def leave(self) -> None:
        """Forget where the walk was: the text on screen is a draft of its own now."""
        self._at = None
        self._draft = None

    @property
    def walking(self) -> bool:
        return self._at is not None

    def previous(self, buffer: EditorBuffer) -> bool:
        """Show the prompt before; False at the oldest."""
        at = len(self._entries) if self._at is None else self._at
        if at == 0:
            return False
        if self._at is None:
            self._draft = buffer.snapshot()
        self._at = at - 1
        self._show(buffer)
        return True

    def next(self, buffer: EditorBuffer) -> bool:
        """Show the prompt after, at last the draft; False when not walking."""
        if self._at is None:
            return False
        self._at += 1
        if self._at < len(self._entries):
            self._show(buffer)
            return True
        draft, self._draft, self._at = self._draft, None, None
        if draft is not None:
            buffer.put_back(draft)
        return True

    def _show(self, buffer: EditorBuffer) -> None:
        assert self._at is not None
        entry = self._entries[self._at]
        if isinstance(entry, Snapshot):
            buffer.put_back(Snapshot(entry.text, len(entry.text)))
        else:
            buffer.set_text(entry)
