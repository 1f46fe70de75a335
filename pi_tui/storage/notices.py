"""Words for what was odd about a session file: plain sentences for the user.

Only counts and line numbers go in, never text of the file.
"""

from __future__ import annotations

from pi_tui.storage.index import Findings

_NAMED_LINES = 3


def notices_of(findings: Findings, *, writable: bool) -> list[str]:
    """What to tell the user; empty for a sound file."""
    said: list[str] = []
    if number := findings.skipped_before_header:
        said.append(
            f"{_count(number, 'line')} before the header could not be read and {_was(number)} "
            "skipped."
        )
    if lines := findings.bad_lines:
        said.append(
            f"{_count(len(lines), 'line')} could not be read and {_was(len(lines))} skipped "
            f"({_lines(lines)}). Everything else was read."
        )
    if number := findings.without_id:
        said.append(f"{_entries(number)} without an id {_was(number)} skipped.")
    if number := findings.zero_blocks:
        said.append(
            f"{_count(number, 'block')} of zero bytes, as a crash leaves them, {_was(number)} "
            "skipped."
        )
    if number := findings.recovered:
        said.append(f"{_entries(number)} on damaged lines could be read.")
    if number := findings.duplicate_ids:
        said.append(f"{_entries(number)} had the id of an earlier one; the later one counts.")
    if number := findings.missing_parents:
        what = "the beginning of a tree of its own" if number == 1 else "beginnings of trees"
        said.append(f"{_entries(number)} named a parent that is not in the file and became {what}.")
    if findings.own_ancestors:
        said.append("Some entries are their own ancestors; the circle was cut.")
    if findings.torn:
        said.append(
            "The last line was incomplete and was skipped. "
            + (
                "It stays in the file, closed with a line end, so that nothing is glued to it."
                if writable
                else "The file was left as it is."
            )
        )
    return said


def _count(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _lines(lines: list[int]) -> str:
    named = ", ".join(str(number) for number in lines[:_NAMED_LINES])
    word = "line" if len(lines) == 1 else "lines"
    return f"{word} {named}" + (" and more" if len(lines) > _NAMED_LINES else "")
