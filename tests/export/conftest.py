"""Conversations to export, and a page as a browser would read it."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.entries import SessionHeader, entry_from_data, head_of
from pi_tui.core.session_library import SessionSnapshot
from pi_tui.core.tree import tree_of
from pi_tui.export.exporter import FileExporter
from pi_tui.storage.memory import MemoryStore

HEADER = SessionHeader(
    id="0197c000-1111-7111-8111-6709c46a50bb",
    timestamp="2026-07-01T00:00:01.000Z",
    cwd="/home/alice/secret-project",
    parent_session="/home/alice/.local/share/sessions/old.jsonl",
)

VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})


class Page(HTMLParser):
    """Elements with their attributes, the text, and the contents of scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.comments: list[str] = []
        self.open: list[str] = []
        self.badly_nested: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:  # `<hr />` counts as a start and an end
            return
        if not self.open or self.open.pop() != tag:
            self.badly_nested.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] == "style":
            self.styles[-1] += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(name)) is not None]


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


class Rig:
    """Exports entries given as stored objects; parents default to the entry before."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.report: Any = None

    def snapshot(self, *entries: dict[str, Any], leaf: str | None = None) -> SessionSnapshot:
        complete = []
        for number, data in enumerate(entries, 1):
            before = complete[-1]["id"] if complete else None
            base = {
                "id": f"{number:08x}",
                "parentId": before,
                "timestamp": f"2026-07-01T00:00:{number % 60:02d}.000Z",
            }
            complete.append({**base, **data})
        store = MemoryStore(HEADER)
        decoded = [entry_from_data(data) for data in complete]
        for entry in decoded:
            store.append(entry)
        tree = tree_of(decoded)
        return SessionSnapshot(
            store, tuple(head_of(entry) for entry in decoded), leaf or tree.leaf_id
        )

    def export(
        self,
        *entries: dict[str, Any],
        name: str = "out.html",
        leaf: str | None = None,
        secrets: tuple[str, ...] = (),
        **options: Any,
    ) -> str:
        path = self.directory / name
        snapshot = self.snapshot(*entries, leaf=leaf)
        self.report = FileExporter(secrets).export(snapshot, str(path), **options)
        return path.read_text("utf-8")

    def page(self, *entries: dict[str, Any], **options: Any) -> Page:
        return parsed(self.export(*entries, **options))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def read_page() -> Callable[[str], Page]:
    return parsed


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """A message entry; `entry` replaces fields of the entry itself."""
    entry = more.pop("entry", {})
    inside = {"role": role, "content": content, "timestamp": 1, **more}
    if role == "assistant":
        inside = {"api": "x", "provider": "fake", "model": "m", "stopReason": "stop"} | inside
    return {"type": "message", "message": inside, **entry}


@pytest.fixture(name="message")
def message_fixture() -> Callable[..., dict[str, Any]]:
    return message
