"""What to do about the branch that is left: nothing, a summary, a summary with own instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from pi_tui.agent.navigator import NavigationPreview
from pi_tui.core.errors import PiTuiError
from pi_tui.core.numbers import compact_count
from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.dialogs.panel import Panel, fitting_hint
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip

SummaryKind: TypeAlias = Literal["none", "summary", "instructions"]

_ROWS: tuple[tuple[SummaryKind, str], ...] = (
    ("none", "no summary"),
    ("summary", "summarise"),
    ("instructions", "summarise with own instructions"),
)


_REMEMBERED: dict[SummaryKind, str] = {
    "none": "go without a summary",
    "summary": "always summarise",
    "instructions": "always with the instructions you give now",
}
_IN_SHORT: dict[SummaryKind, str] = {
    "none": "no summary",
    "summary": "summarise",
    "instructions": "own instructions",
}


class SummaryChoice(Struct, frozen=True):
    """`remember`: do the same without asking until the program ends."""

    kind: SummaryKind
    remember: bool = False


class SummaryChoicePanel(Panel[SummaryChoice]):
    """Asks. When it turns out that nothing could be summarised, it closes without a summary."""

    def __init__(
        self,
        preview: Callable[[], Awaitable[NavigationPreview]],
        palette: Palette,
        keys: KeyMap,
        *,
        chosen: SummaryKind = "none",
        remember: bool = False,
        has_instructions: bool = False,
    ) -> None:
        super().__init__("Summarise the branch you leave?", palette, keys)
        self._preview = preview
        self._facts = "counting what is left …"
        self._counting: asyncio.Task[None] | None = None
        self._at = next(n for n, (kind, _) in enumerate(_ROWS) if kind == chosen)
        self._remember = remember
        self._has_instructions = has_instructions

    def on_mount(self) -> None:
        self.call_after_refresh(self._start_counting)

    def on_unmount(self) -> None:
        if self._counting is not None:
            self._counting.cancel()

    def _start_counting(self) -> None:
        if self.is_attached:
            self._counting = asyncio.get_running_loop().create_task(self._count())

    async def _count(self) -> None:
        try:
            preview = await self._preview()
            self._facts = branch_facts(preview)
            if not preview.summarizable:
                self.finish(SummaryChoice("none"))
        except PiTuiError as error:
            self._facts = error.text
        self.refresh()

    @property
    def hint(self) -> str:
        confirm = self.keys.label("tui.select.confirm")
        cancel = self.keys.label("tui.select.cancel")
        # The way out stands first: a narrow terminal cuts the end.
        return f"{cancel} back · {confirm} go · ↑ ↓ move · space don't ask again"

    def wanted_rows(self) -> int:
        return len(_ROWS) + 2

    def key(self, name: str, character: str | None) -> None:
        keys = self.keys
        if keys.means(name, "tui.select.confirm"):
            self.finish(SummaryChoice(_ROWS[self._at][0], self._remember))
        elif keys.means(name, "tui.select.cancel"):
            self.finish(None)
        elif keys.means(name, "tui.select.up"):
            self._at = max(0, self._at - 1)
        elif keys.means(name, "tui.select.down"):
            self._at = min(len(_ROWS) - 1, self._at + 1)
        elif name == "space":
            self._remember = not self._remember
        self.refresh()

    def body_line(self, y: int, width: int) -> Strip:
        ink = self.palette.ink
        if y == 0:
            facts = sanitise_line(self._facts)
            if cell_len(facts) + 2 > width:
                facts = facts.replace(" left behind", " left", 1)
            return Strip([Segment(f"  {fitting_hint(facts, width - 2)}", ink("muted"))])
        if y <= len(_ROWS):
            kind, text = _ROWS[y - 1]
            chosen = y - 1 == self._at
            if kind == "instructions" and self._has_instructions:
                text += " (as typed before)"
            shown = f"{'→' if chosen else ' '} {text}"
            return Strip([Segment(clip(f"  {shown}", width), ink("accent" if chosen else "text"))])
        box = "[x]" if self._remember else "[ ]"
        kind = _ROWS[self._at][0]
        text = f"  {box} don't ask again in this session"
        if self._remember:
            longer = f"{text}: {_REMEMBERED[kind]}"
            fits = cell_len(longer) <= width
            text = longer if fits else f"  {box} don't ask again: {_IN_SHORT[kind]}"
        return Strip([Segment(clip(text, width), ink("text"))])

    async def _on_click(self, event: events.Click) -> None:
        """A choice is taken; the box is set or not."""
        event.stop()
        row = event.y - 2  # below the rule and what is said about the branch
        if event.button != 1:
            return
        if 0 <= row < len(_ROWS):
            self._at = row
            self.finish(SummaryChoice(_ROWS[row][0], self._remember))
        elif row == len(_ROWS):
            self._remember = not self._remember
        self.refresh()


def branch_facts(preview: NavigationPreview) -> str:
    """What is left behind, in one line."""
    entries = f"{preview.entries:,} {'entry' if preview.entries == 1 else 'entries'}"
    if not preview.summarizable:
        them = "it" if preview.entries == 1 else "them"
        return f"{entries} left behind, nothing in {them} to summarise"
    words = [f"{entries} left behind", f"about {compact_count(preview.estimated_tokens)} tokens"]
    if preview.modified_files:
        count = len(preview.modified_files)
        words.append(f"{count} changed {'file stays as it is' if count == 1 else 'files stay'}")
    if preview.left_out_messages:
        words.append(f"the oldest {preview.left_out_messages:,} messages do not fit a summary")
    return " · ".join(words)
