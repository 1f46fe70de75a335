"""Earlier prompts, walked with Up and Down; the draft that was being typed waits at the end."""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.tui.editor.buffer import EditorBuffer, Snapshot

_ENTRIES_KEPT = 1000


class PromptHistory:
    """Prompts, oldest first. Those sent in this run keep their collapsed pastes."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries: list[str | Snapshot] = [entry for entry in entries if entry]
        self._at: int | None = None
        self._draft: Snapshot | None = None

    def extend_back(self, entries: Iterable[str]) -> None:
        """Add prompts that are older than all others, oldest first."""
        older: list[str | Snapshot] = [entry for entry in entries if entry]
        self._entries[:0] = older
        if self._at is not None:
            self._at += len(older)

    def add(self, entry: str | Snapshot) -> None:
        """Add the newest prompt; walking starts again from here."""
        if not self._entries or self._entries[-1] != entry:
            self._entries.append(entry)
            del self._entries[:-_ENTRIES_KEPT]
        self.leave()

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
