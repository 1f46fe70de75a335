"""Completion of paths: `@` opens a list of files found by a few letters, Tab completes a path.

Directories are read in threads. Typing never waits for them: the list fills as they answer. Tab
waits a moment, because it has to be done before the next key; from a slow disk the list comes
later. Times are seconds.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from pi_tui.tui.editor.completion import Completion, CompletionItem
from pi_tui.tui.editor.file_index import FileIndex, in_order, names_in, walk
from pi_tui.tui.side_reader import SideReader

FRESH_S = 5.0
"""A file list older than this is read again when it is used."""
TAB_WAIT_S = 0.05
FIND_AT_ONCE = 3_000
"""Longer file lists are searched in a thread."""
MAX_NAMES = 5_000
MAX_ITEMS = 500
MAX_WORD_CHARS = 1_000

_AT_WORD = re.compile(r'(?:\A|(?<=[\s(\[{<"\'`,;:=]))@(?:"(?P<quoted>[^"]*)|(?P<plain>[^\s"]*))\Z')
_WORD = re.compile(r'(?:\A!{0,2}|(?<=\s))(?:"(?P<quoted>[^"]*)|(?P<plain>[^\s"]*))\Z')
_ATOM = re.compile("[\U00100000-\U0010fffd]")


class PathWord(Struct, frozen=True):
    """The path that is being typed. `start` is where it begins, with its `@` and its quote."""

    start: int
    path: str
    at: bool
    quoted: bool

    @property
    def directory(self) -> str:
        """The part up to the last slash, with it."""
        return self.path[: self.path.rfind("/") + 1]

    @property
    def is_below(self) -> bool:
        """True for a path that does not leave the present directory."""
        return not self.path.startswith(("/", "~", "../", "./")) and "/../" not in self.path

    def written(self, path: str, *, whole: bool) -> str:
        """How another path is written in its place; a whole one is closed with a blank."""
        quote = '"' if self.quoted or any(character.isspace() for character in path) else ""
        text = f"{'@' if self.at else ''}{quote}{path}"
        return f"{text}{quote} " if whole else text


def path_word(text: str, cursor: int, *, only_at: bool) -> PathWord | None:
    """The word before the cursor as a path; with `only_at` only one that begins with `@`."""
    line_start = max(text.rfind("\n", 0, cursor) + 1, cursor - MAX_WORD_CHARS)
    line = text[line_start:cursor]
    found = _AT_WORD.search(line)
    at = found is not None
    if found is None and not only_at:
        found = _WORD.search(line)
    if found is None or _ATOM.search(found[0]):
        return None
    quoted = found["quoted"] is not None
    path: str = found["quoted"] if quoted else found["plain"]
    start = line_start + found.end() - len(path) - quoted - at
    return PathWord(start, path, at, quoted)


class PathCompleter:
    """See the module. `cwd` gives the directory paths are relative to; `home` is `~`.

    `ready` is called when there may be more rows than before; the app sets it.
    """

    def __init__(
        self,
        cwd: Callable[[], str],
        home: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cwd = cwd
        self._home = home
        self._clock = clock
        self.ready: Callable[[], None] = _nobody
        self._root = ""
        self._index = FileIndex()
        self._index_s = float("-inf")
        self._walk: SideReader[str] | None = None
        self._finding: SideReader[list[str]] | None = None
        self._found: tuple[str, list[str]] | None = None
        self._wanted: str | None = None
        self._listed: tuple[str, list[str]] | None = None
        self._listing: SideReader[list[str]] | None = None
        self._listing_of = ""
        self._tabbed: tuple[int, str] | None = None

    # ------------------------------------------------------------ what the editor asks

    def complete(self, text: str, cursor: int) -> Completion | None:
        word = path_word(text, cursor, only_at=True)
        if word is None:
            return self._after_tab(text, cursor)
        return self._by_letters(word) if word.is_below else self._by_directory(word)

    def complete_on_tab(self, text: str, cursor: int) -> Completion | None:
        word = path_word(text, cursor, only_at=False)
        if word is None:
            return None
        self._tabbed = (word.start, word.directory)
        self._read_now(self._absolute(word.directory))
        return self._by_directory(word)

    def stop(self) -> None:
        """End all reading."""
        for reader in (self._walk, self._finding, self._listing):
            if reader is not None:
                reader.stop()

    def _after_tab(self, text: str, cursor: int) -> Completion | None:
        """After Tab has opened a list it goes on while a name in that directory is typed."""
        word = None if self._tabbed is None else path_word(text, cursor, only_at=False)
        if word is not None and self._tabbed == (word.start, word.directory):
            return self._by_directory(word)
        self._tabbed = None
        return None

    # ------------------------------------------------------------ files by a few letters

    def _by_letters(self, word: PathWord) -> Completion:
        self._freshen()
        items = [_item(word, path, path) for path in self._find(word.path)]
        return Completion(word.start, tuple(items))

    def _freshen(self) -> None:
        root, now_s = self._cwd(), self._clock()
        walking = self._walk is not None and self._walk.running
        if root == self._root and (walking or now_s - self._index_s <= FRESH_S):
            return
        if self._walk is not None:
            self._walk.stop()
        first = root != self._root
        index = FileIndex()
        if first:
            self._root, self._index, self._found = root, index, None

        def add(paths: Sequence[str]) -> None:
            index.add(paths)
            if first:
                self._changed()

        def ended(failure: Exception | None) -> None:
            self._index, self._index_s = index, self._clock()
            self._changed()
            if failure is not None:
                raise failure  # a fault: the application tells about it

        self._walk = SideReader(lambda stopped: walk(root, stopped), add, ended)

    def _changed(self) -> None:
        """The file list is another one now."""
        if len(self._index) > FIND_AT_ONCE and self._wanted is not None:
            self._find_aside(self._wanted)
        self.ready()

    def _find(self, query: str) -> list[str]:
        if len(self._index) <= FIND_AT_ONCE:
            return self._index.find(query)
        if self._found is not None and self._found[0] == query:
            return self._found[1]
        if self._wanted != query:
            self._find_aside(query)
        # Until the answer is there: what still fits of the one before.
        before = self._found[1] if self._found is not None else []
        return [path for path in before if in_order(query.casefold(), path.casefold())]

    def _find_aside(self, query: str) -> None:
        if self._finding is not None:
            self._finding.stop()
        self._wanted = query
        index = self._index

        def found(answers: Sequence[list[str]]) -> None:
            self._found = query, answers[0]

        def ended(failure: Exception | None) -> None:
            self._wanted = None
            self.ready()
            if failure is not None:
                raise failure

        self._finding = SideReader(lambda stopped: [index.find(query)], found, ended)

    # ------------------------------------------------------------ names in a directory

    def _by_directory(self, word: PathWord) -> Completion | None:
        directory = self._absolute(word.directory)
        if self._listed is None or self._listed[0] != directory:
            self._list(directory)
            return None
        prefix = word.path[len(word.directory) :]
        names = _beginning_with(prefix, self._listed[1])
        items = tuple(_item(word, word.directory + name, name) for name in names[:MAX_ITEMS])
        common = ""
        if len(names) > 1:
            shared = _common_start(names)
            if len(shared) > len(prefix):
                common = word.written(word.directory + shared, whole=False)
        return Completion(word.start, items, common=common)

    def _absolute(self, directory: str) -> str:
        if directory.startswith("~/") and self._home:
            return os.path.normpath(os.path.join(self._home, directory[2:]))  # noqa: PTH118
        return os.path.normpath(os.path.join(self._cwd(), directory))  # noqa: PTH118

    def _read_now(self, directory: str) -> None:
        """Read a directory, if that is quick; a slow one is read on in the background."""
        answer: list[list[str]] = []
        done = threading.Event()

        def read() -> None:
            answer.append(_names(directory))
            done.set()

        threading.Thread(target=read, name="tab", daemon=True).start()
        if done.wait(TAB_WAIT_S):
            self._listed = directory, answer[0]
        else:
            self._listed = None

    def _list(self, directory: str) -> None:
        if self._listing is not None and self._listing.running:
            if self._listing_of == directory:
                return
            self._listing.stop()
        self._listing_of = directory

        def listed(answers: Sequence[list[str]]) -> None:
            self._listed = directory, answers[0]

        def ended(failure: Exception | None) -> None:
            self.ready()
            if failure is not None:
                raise failure

        self._listing = SideReader(lambda stopped: [_names(directory)], listed, ended)


def _nobody() -> None:
    """Nobody wants to hear that there is more."""


def _item(word: PathWord, path: str, label: str) -> CompletionItem:
    whole = not path.endswith("/")
    return CompletionItem(insert=word.written(path, whole=whole), label=label)


def _names(directory: str) -> list[str]:
    names = []
    for name, is_directory in names_in(directory, MAX_NAMES):
        inside = is_directory or os.path.isdir(os.path.join(directory, name))  # noqa: PTH112, PTH118
        names.append(f"{name}/" if inside else name)
    return names


def _common_start(names: Sequence[str]) -> str:
    """What all names begin with."""
    first, last = min(names), max(names)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return first[:length] if length is not None else min(first, last, key=len)


def _beginning_with(prefix: str, names: Sequence[str]) -> list[str]:
    """The names that begin so; whatever the case, where none does otherwise."""
    shown = [name for name in names if prefix.startswith(".") or not name.startswith(".")]
    exact = [name for name in shown if name.startswith(prefix)]
    folded = prefix.casefold()
    return exact or [name for name in shown if name.casefold().startswith(folded)]
