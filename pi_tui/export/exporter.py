"""Chooses the format by the name of the file and writes it for the owner alone.

Blocks, and may take seconds for a large session: call it in a thread, with a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from pi_tui.core.errors import UsageError
from pi_tui.core.session_library import ExportFormat, ExportReport, SessionSnapshot
from pi_tui.export.contents import Conversation
from pi_tui.export.jsonl import session_lines
from pi_tui.export.masking import Masker
from pi_tui.export.private_file import write_private

_FORMATS: dict[str, ExportFormat] = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".jsonl": "jsonl",
}


class FileExporter:
    """An `Exporter` over files.

    `secrets` are values that are masked whatever they look like; each export asks for them anew.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = secrets

    def export(
        self, session: SessionSnapshot, path: str, *, replace: bool = False, masked: bool = True
    ) -> ExportReport:
        """See `core.session_library.Exporter`."""
        format_ = format_of(path)
        if format_ == "jsonl":
            size_bytes = write_private(path, session_lines(session), replace=replace)
            return ExportReport(path, format_, size_bytes)
        conversation = Conversation(session.tree(), Masker(self._secrets, active=masked))
        if format_ == "html":
            from pi_tui.export.html_page import html_page

            parts = html_page(conversation, session.store.header)
        else:
            from pi_tui.export.markdown import markdown_text

            parts = markdown_text(conversation)
        size_bytes = write_private(path, _encoded(parts), replace=replace)
        return ExportReport(
            path,
            format_,
            size_bytes,
            masked_keys=conversation.masker.count,
            commands_left_out=conversation.commands_left_out,
        )


def format_of(path: str) -> ExportFormat:
    """The format a file name stands for. Raises UsageError for any other."""
    suffix = PurePath(path).suffix.lower()
    found = _FORMATS.get(suffix)
    if found is None:
        raise UsageError(
            f"the name {PurePath(path).name!r} does not tell the format",
            hint="End it with .html, .md or .jsonl.",
        )
    return found


def _encoded(parts: Iterable[str]) -> Iterator[bytes]:
    for part in parts:
        yield part.encode("utf-8", "replace")
