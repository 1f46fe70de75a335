"""The session picker: search field, list, and the keys that act on the selected session.

It shows a `SessionView` that a `SessionFeed` fills, and hands renaming and deleting to
`SessionDeeds`. Its result is the path of the session to open. No key waits for a disk: Enter on a
list that does not show yet what was typed opens the first hit once the search is through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.timer import Timer

from pi_tui.core.errors import UsageError
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.session_library import SessionHit, SessionLibrary, SessionRow
from pi_tui.core.session_search import Query, parse_query
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.sessions.line_field import LineField
from pi_tui.tui.sessions.picker_lines import (
    DELETE,
    NAMED,
    PATHS,
    RENAME,
    SCOPE,
    SORT,
    key_hints,
    states_line,
    why_empty,
)
from pi_tui.tui.sessions.row_painter import SessionPainter
from pi_tui.tui.sessions.session_feed import SessionFeed, words_of
from pi_tui.tui.sessions.session_view import PickerChoices, SessionView

SMALL_ROWS = 28
"""Below this height of the terminal the panel takes all of it."""
OTHER_ROWS = 3
"""What the panel leaves: the footer and a line of the transcript."""
LEAST_BODY_ROWS = 8
WHEEL_ROWS = 3
DEBOUNCE_S = 0.08
STALE_S = 0.15
SCOPES = ("app.session.", "tui.select.", "tui.input.", "tui.altScreen.")


class SessionDeeds(Protocol):
    """What the picker has done by others; they go on in the background and tell it the end."""

    def is_open(self, row: SessionRow) -> bool: ...
    def rename(self, row: SessionRow, name: str) -> None: ...
    def delete(self, row: SessionRow) -> None: ...


class SessionPanel(Panel[str]):
    """The picker over one library."""

    DEFAULT_CSS = "SessionPanel { height: 12; }"

    def __init__(
        self,
        library: SessionLibrary,
        deeds: SessionDeeds,
        choices: PickerChoices,
        palette: Palette,
        keys: KeyMap,
        *,
        query: str = "",
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__("Resume session", palette, keys)
        self.view = SessionView(choices)
        self.feed = SessionFeed(library, self)
        self.search_field = LineField(query)
        self._library = library
        self._deeds = deeds
        self._painter = SessionPainter(palette, library.shown, library.cwd, deeds.is_open, now_ms)
        self._name_field: LineField | None = None
        self._renamed: SessionRow | None = None
        self._query = Query()
        self._problem = ""
        self._notice = ("", "muted")
        self._open_first = False
        self._top = 0
        self._most_rows = 0
        self._waits: dict[str, Timer] = {}
        self._commands = self._command_table()

    def on_mount(self) -> None:
        self._read()
        if self.search_field.text:
            self._query_changed()

    def on_unmount(self) -> None:
        self.feed.stop()
        for timer in self._waits.values():
            timer.stop()

    # ------------------------------------------------------------ size

    def wanted_rows(self) -> int:
        """As high as the longest list so far: the screen does not jump while typing."""
        self._most_rows = max(self._most_rows, len(self.view))
        return max(LEAST_BODY_ROWS, self._most_rows + 3)

    def fit(self) -> None:
        """A bit more than half of the terminal; all of a small one."""
        rows = self._available_rows
        whole = rows - OTHER_ROWS - 2
        limit = whole if rows < SMALL_ROWS else rows * 3 // 5 - 2
        self._body_rows = max(1, min(self.wanted_rows(), limit))
        self.styles.height = self._body_rows + 2
        self.refresh()

    @property
    def _list_from(self) -> int:
        """The body line the list begins at: the states come first, then the search."""
        return 2 if self.body_rows >= 5 else min(1, self.body_rows - 1)

    @property
    def _list_rows(self) -> int:
        status = 1 if self.body_rows >= 3 else 0
        return max(1, self.body_rows - self._list_from - status)

    # ------------------------------------------------------------ keys

    def _command_table(self) -> dict[str, Callable[[], None]]:
        view = self.view
        return {
            "tui.select.confirm": self._confirm,
            "tui.select.cancel": self._step_back,
            "tui.select.up": lambda: view.move(-1, wrap=True),
            "tui.select.down": lambda: view.move(1, wrap=True),
            "tui.select.pageUp": lambda: view.move(-self._list_rows),
            "tui.select.pageDown": lambda: view.move(self._list_rows),
            "tui.altScreen.top": lambda: view.move(-len(view)),
            "tui.altScreen.bottom": lambda: view.move(len(view)),
            SCOPE: self._toggle_scope,
            SORT: view.next_sort,
            NAMED: view.toggle_named,
            PATHS: self._toggle_paths,
            RENAME: self._begin_rename,
            DELETE: self._delete,
            "app.session.deleteNoninvasive": self._delete_or_word,
        }

    def key(self, name: str, character: str | None) -> None:
        self._notice = ("", "muted")
        if self._name_field is not None:
            self._rename_key(self._name_field, name, character)
        else:
            self._list_key(name, character)
        self._show()

    def _list_key(self, name: str, character: str | None) -> None:
        for action in self.keys.actions(name, SCOPES):
            command = self._commands.get(action)
            if command is not None:
                if action != "tui.select.confirm":
                    self._open_first = False
                command()
                return
        before = self.search_field.text
        self.search_field.key(name, character, self.keys)
        if self.search_field.text != before:
            self._query_changed()

    def paste(self, text: str) -> None:
        if self._name_field is not None:
            self._name_field.insert(text.strip())
        elif text.strip():
            self.search_field.insert(text.strip())
            self._query_changed()
        self._show()

    def _confirm(self) -> None:
        if self.view.stale or (self.feed.searching and not len(self.view)):
            self._open_first = True
            self._tell("opens the first hit as soon as it is found")
        elif self.view.selected is not None:
            self.finish(self.view.selected.path)

    def _step_back(self) -> None:
        if self.search_field.text:
            self.search_field.clear()
            self._query_changed()
        else:
            self.finish(None)

    def _toggle_scope(self) -> None:
        self.view.toggle_scope()
        self._read()
        if self._query:
            self._search_now()

    def _toggle_paths(self) -> None:
        self.view.choices.paths = not self.view.choices.paths

    # ------------------------------------------------------------ rename, delete

    def _begin_rename(self) -> None:
        row = self.view.selected
        if row is not None and not self.view.stale:
            self._renamed = row
            self._name_field = LineField(row.name or "")
            self._tell("enter saves the name · esc keeps the old one · empty: no name")

    def _rename_key(self, field: LineField, name: str, character: str | None) -> None:
        keys, row = self.keys, self._renamed
        if keys.means(name, "tui.select.cancel") or row is None:
            self._name_field = None
        elif keys.means(name, "tui.select.confirm"):
            self._name_field = None
            wanted = " ".join(field.text.split())
            if wanted != (row.name or ""):
                self._deeds.rename(row, wanted)
        else:
            field.key(name, character, keys)

    def _delete(self) -> None:
        row = self.view.selected
        if row is not None and not self.view.stale:
            self._deeds.delete(row)

    def _delete_or_word(self) -> None:
        if not self.search_field.text:
            self._delete()
            return
        self.search_field.key("ctrl+w", None, self.keys)
        self._query_changed()

    def tell(self, text: str, role: str = "muted") -> None:
        """Show a line until the next key; the text may be foreign."""
        self._tell(text, role)
        self._show()

    def replaced(self, row: SessionRow) -> None:
        """A session is another one now: it was renamed."""
        self.view.replace_row(row)
        self._show()

    def removed(self, path: str) -> None:
        """A session is gone."""
        self.view.remove(path)
        self._show()

    def _tell(self, text: str, role: str = "muted") -> None:
        self._notice = (sanitise_line(text), role)

    # ------------------------------------------------------------ reading and searching

    def _read(self) -> None:
        self.view.begin_reading()
        self.feed.read(everywhere=self.view.choices.everywhere)

    def rows_read(self, rows: Sequence[SessionRow]) -> None:
        self.view.add_rows(rows)
        self._show()

    def reading_ended(self, problem: str | None) -> None:
        if problem is None:
            self.view.end_reading()
        else:
            self._tell(problem, "error")
        self._show()

    def _query_changed(self) -> None:
        """Another text to search for; searched a moment later, when the typing rests."""
        self._problem = ""
        self._open_first = False
        self.feed.stop_search()
        self._stop("stale")
        try:
            query = parse_query(self.search_field.text)
        except UsageError as error:
            # While a pattern is being typed it is often no pattern yet: the list stays.
            self._problem = words_of(error)
            self._stop("search")
            return
        self._query = query
        if not query:
            self._stop("search")
            self._painter.query = query
            self.view.clear_search()
            return
        self.view.begin_search()
        self._later("search", DEBOUNCE_S, self._search_now)

    def _search_now(self) -> None:
        self.view.begin_search()
        self._painter.query = self._query
        self._later("stale", STALE_S, self._drop_stale)
        everywhere = self.view.choices.everywhere
        self.feed.search(self._query, self.view.rows, everywhere=everywhere)
        self._show()

    def _drop_stale(self) -> None:
        self.view.drop_stale()
        self._show()

    def hits_found(self, hits: Sequence[SessionHit]) -> None:
        self.view.add_hits(hits)
        self._show()

    def search_ended(self, problem: str | None) -> None:
        self._stop("stale")
        self.view.drop_stale()
        self._problem = problem or ""
        if self._open_first:
            self._open_first = False
            self._notice = ("", "muted")
            if self.view.selected is not None:
                self.finish(self.view.selected.path)
        self._show()

    def _later(self, name: str, delay_s: float, call: Callable[[], None]) -> None:
        self._stop(name)
        self._waits[name] = self.set_timer(delay_s, call)

    def _stop(self, name: str) -> None:
        timer = self._waits.pop(name, None)
        if timer is not None:
            timer.stop()

    # ------------------------------------------------------------ mouse

    def on_click(self, event: events.Click) -> None:
        event.stop()
        number = self._top + event.y - 1 - self._list_from
        inside = 0 <= event.y - 1 - self._list_from < self._list_rows
        if self._name_field is not None or not inside or number >= len(self.view):
            return
        if number == self.view.at and not self.view.stale:
            self._confirm()
        else:
            self.view.select(number)
        self._show()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -WHEEL_ROWS)

    def _wheel(self, event: events.MouseEvent, rows: int) -> None:
        event.stop()
        if self._name_field is None:
            self.view.move(rows)
            self._show()

    # ------------------------------------------------------------ drawing

    def _show(self) -> None:
        choices = self.view.choices
        self._painter.everywhere, self._painter.paths = choices.everywhere, choices.paths
        where = sanitise_line(self._library.shown(self._library.cwd))
        self.title = "Resume session" + ("" if choices.everywhere else f" of {where}")
        if self.is_attached:
            self.fit()

    @property
    def hint(self) -> str:
        return key_hints(self.keys, self.view.choices, self.size.width)

    def body_line(self, y: int, width: int) -> Strip:
        start = self._list_from
        if start == 2 and y == 0:
            return states_line(self.view.choices, self.palette, width)
        if y < start:
            return self._search_line(width)
        if y - start >= self._list_rows:
            return self._status(width)
        return self._list_line(y - start, width)

    def _search_line(self, width: int) -> Strip:
        ink = self.palette.ink
        mark = Segment("  > ", ink("muted"))
        if self._name_field is not None:
            return Strip([mark, Segment(self.search_field.text, ink("dim"))])
        field = self.search_field.draw(width - 4, ink("text"))
        if not self.search_field.text:
            help_ = Segment(' search: words, "exact words", re:pattern', ink("dim"))
            return Strip.join([Strip([mark]), field, Strip([help_])])
        return Strip.join([Strip([mark]), field])

    def _list_line(self, y: int, width: int) -> Strip:
        view, rows = self.view, self._list_rows
        self._top = min(self._top, view.at)
        self._top = max(0, view.at - rows + 1, min(self._top, len(view) - rows))
        number = self._top + y
        if number >= len(view):
            text = self._empty() if not len(view) and y == 0 else ""
            return Strip([Segment(f"  {text}", self.palette.ink("muted"))])
        shown, selected = view[number], number == view.at
        if selected and self._name_field is not None:
            indent = 12 + 3 * shown.depth
            field = self._name_field.draw(width - indent, self.palette.ink("text"))
            return self._painter.draw_field(shown, width, field)
        return self._painter.draw(shown, width, selected=selected)

    def _empty(self) -> str:
        if self.feed.searching or self.view.stale:
            return "searching …"
        if self.feed.reading:
            return "reading …"
        return why_empty(self.keys, self.view)

    def _status(self, width: int) -> Strip:
        ink = self.palette.ink
        text, role = self._notice
        if self._problem and not text:
            text, role = sanitise_line(self._problem), "error"
        if text:
            return Strip([Segment(f"  {text}", ink(role))])
        view = self.view
        at = view.at + 1 if len(view) else 0
        busy = "searching … " if self.feed.searching or view.stale else ""
        busy = busy or ("reading … " if self.feed.reading else "")
        facts = f" {self._painter.facts(view.selected)}" if view.selected is not None else ""
        return Strip(
            [
                Segment(f"  ({at:,}/{len(view):,})", ink("dim")),
                Segment(f" {busy}" if busy else "", ink("accent")),
                Segment(facts, ink("dim")),
            ]
        )
