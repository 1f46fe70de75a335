"""Which sessions are listed, in which order, and what stays selected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pi_tui.core.session_library import SessionHit, SessionRow
from pi_tui.tui.sessions.session_view import PickerChoices, SessionView

Row = Callable[..., SessionRow]


def view_of(rows: list[SessionRow], **choices: Any) -> SessionView:
    view = SessionView(PickerChoices(**choices))
    view.begin_reading()
    view.add_rows(rows)
    view.end_reading()
    return view


def listed(view: SessionView) -> list[tuple[int, str]]:
    return [(view[n].depth, view[n].row.id) for n in range(len(view))]


def test_forks_hang_below_what_they_come_from(row: Row) -> None:
    fork = row(3, parent=row(2).path)
    view = view_of([row(1), row(2), fork, row(4, parent="id-3"), row(5, parent="/gone")])
    assert listed(view) == [(0, "id-1"), (0, "id-2"), (1, "id-3"), (2, "id-4"), (0, "id-5")]
    view.next_sort()
    assert view.choices.sort == "recent"
    assert listed(view) == [(0, f"id-{n}") for n in range(1, 6)]


def test_relevance_and_threads_with_the_best_hit_first(row: Row) -> None:
    rows = [row(1), row(2), row(3, parent="id-2"), row(4)]
    view = view_of(rows)
    view.begin_search()
    scores = (10.0, 20.0, 90.0, 50.0)
    view.add_hits([SessionHit(r, score, "x") for r, score in zip(rows, scores, strict=True)])
    assert listed(view) == [(0, "id-2"), (1, "id-3"), (0, "id-4"), (0, "id-1")]
    view.choices.sort = "recent"
    view.next_sort()
    assert listed(view) == [(0, "id-3"), (0, "id-4"), (0, "id-2"), (0, "id-1")]


def test_named_only(row: Row) -> None:
    view = view_of([row(1), row(2, name="b"), row(3)])
    view.toggle_named()
    assert listed(view) == [(0, "id-2")]
    view.toggle_named()
    assert len(view) == 3


def test_the_selected_session_stays_selected_while_rows_come(row: Row) -> None:
    view = view_of([row(2), row(4)])
    view.begin_reading()
    view.add_rows([row(3)])
    assert view.selected == row(2)  # nobody moved: the first one
    view.move(1)
    chosen = view.selected
    view.add_rows([row(1), row(5)])
    view.end_reading()  # 2 and 4 did not come again
    assert [r.id for r in view.rows] == ["id-1", "id-3", "id-5"]
    assert chosen == row(4) and view.selected in view.rows
    view.select(1)
    view.begin_reading()
    view.add_rows([row(0), row(1), row(3), row(5)])
    view.end_reading()
    assert view.selected == row(3) and view.at == 2


def test_removing_selects_the_next_one(row: Row) -> None:
    view = view_of([row(1), row(2), row(3)])
    view.move(1)
    view.remove("/sessions/2.jsonl")
    assert view.selected == row(3)
    view.remove("/sessions/3.jsonl")
    assert view.selected == row(1)
    view.remove("/sessions/1.jsonl")
    assert view.selected is None and view.at == 0


def test_old_hits_stay_until_there_are_others(row: Row) -> None:
    rows = [row(1), row(2), row(3)]
    view = view_of(rows)
    view.begin_search()
    assert view.stale and len(view) == 3
    view.add_hits([SessionHit(rows[1], 1.0, "x")])
    assert not view.stale and listed(view) == [(0, "id-2")]
    view.begin_search()
    assert view.stale and listed(view) == [(0, "id-2")]
    view.drop_stale()
    assert len(view) == 0 and view.searching
    view.clear_search()
    assert len(view) == 3 and not view.searching


def test_hits_of_sessions_that_are_gone_are_not_shown(row: Row) -> None:
    view = view_of([row(1), row(2)])
    view.begin_search()
    view.remove(row(1).path)
    view.add_hits([SessionHit(row(1), 1.0, "x"), SessionHit(row(2), 1.0, "x")])
    assert listed(view) == [(0, "id-2")]


def test_scopes_have_lists_of_their_own(row: Row) -> None:
    view = view_of([row(1)])
    view.toggle_scope()
    assert len(view) == 0
    view.begin_reading()
    view.add_rows([row(1), row(2, cwd="/other")])
    view.end_reading()
    assert len(view) == 2
    view.toggle_scope()
    assert listed(view) == [(0, "id-1")]
