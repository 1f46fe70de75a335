"""The session picker as a person uses it: keys in, lines and results out."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from textual import events

from pi_tui.commands.builtin import builtin_registry
from pi_tui.commands.sessions import PicksSessions, session_commands
from pi_tui.core.errors import NoTrashError, SessionLockedError, StorageError
from pi_tui.core.session_library import SessionRow
from pi_tui.tui.app import PiTuiApp
from pi_tui.tui.options import TuiOptions
from pi_tui.tui.sessions.panel import SessionPanel
from pi_tui.tui.sessions.session_view import PickerChoices

Row = Callable[..., SessionRow]
Make = Callable[..., Any]

BRACKETS = [
    "[/]",
    "[bold",
    "for (k of m[/* all */]) {}  ]  }",
    "[@click=app.quit]press[/]",
    "$100 {value} \\[escaped]",
]
HOSTILE = "\x1b[2J\x1b]0;title\x07one\r\x9b31m\u202etwo\nthree"


async def test_enter_gives_the_path_of_the_selected_session(
    picking: Make, library: Make, row: Row
) -> None:
    async with picking(library([row(1), row(2), row(3)])) as p:
        await p.settled()
        assert p.titles == ["text 1", "text 2", "text 3"]
        assert "Resume session of ~/project" in p.screen
        await p.press("down", "enter")
        assert await p.picked == "/sessions/2.jsonl"
        assert p.app.editor.display


async def test_escape_gives_nothing_and_clears_the_search_before(
    picking: Make, library: Make, row: Row
) -> None:
    async with picking(library([row(1)])) as p:
        await p.search("nowhere")
        assert p.titles == [] and "nothing fits here; tab shows those of all" in p.screen
        await p.press("escape")
        await p.settled()
        assert p.titles == ["text 1"] and not p.picked.done()
        await p.press("escape")
        assert await p.picked is None


async def test_a_row_tells_count_age_and_size(picking: Make, library: Make, row: Row) -> None:
    rows = [row(1), row(90, message_count=12_345, size_bytes=52_400_000, parent="id-1")]
    async with picking(library(rows)) as p:
        await p.settled()
        assert p.line("text 1").split() == ["›", "text", "1", "1", "1", "min", "2", "kB"]
        fork = p.line("text 90")
        assert fork.startswith("  └─ text 90") and fork.endswith("12k     1 h  52.4 MB")
        assert "(1/2) ~/project · 1 message · 1 min · 2 kB" in p.screen
        await p.press("down")
        assert "12,345 messages" in p.screen and "a fork" in p.screen


async def test_directories_of_others_and_missing_ones_are_marked(
    picking: Make, library: Make, row: Row
) -> None:
    rows = [row(1), row(2, cwd="/home/you/old", cwd_exists=False), row(3, cwd="/home/you/other")]
    async with picking(library(rows)) as p:
        await p.settled()
        assert p.titles == ["text 1"]
        await p.press("tab")
        await p.settled()
        assert len(p.titles) == 3
        assert "~/old (gone)" in p.line("text 2") and "~/other" in p.line("text 3")
        await p.press("end", "down", "down")
        assert "another directory" in p.screen
        await p.press("ctrl+p")
        assert "/sessions/2.jsonl" in p.line("text 2")
        await p.press("tab")
        assert p.titles == ["text 1"]


async def test_no_session_here_says_where_others_are(
    picking: Make, library: Make, row: Row
) -> None:
    async with picking(library([row(1, cwd="/other")])) as p:
        await p.settled()
        assert "no session belongs to this directory; tab shows those of all" in p.screen
        await p.press("enter", "ctrl+d", "ctrl+r", "down", "pageup")
        assert not p.picked.done() and len(p.app._panels) == 1
    async with picking(library([]), choices=PickerChoices(everywhere=True)) as p:
        await p.settled()
        assert "there are no stored sessions yet" in p.screen


# ---------------------------------------------------------------- reading and searching


async def test_the_list_fills_while_keys_work(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(n) for n in range(1, 2_001)])
    shelf.gate.clear()
    async with picking(shelf) as p:
        assert "reading …" in p.screen
        await p.type("no")
        assert "> no" in p.screen
        await p.press("escape")
        shelf.gate.set()
        await p.until(lambda: len(p.panel.view) > 0)
        await p.press("down")
        await p.settled()
        assert len(p.panel.view) == 2_000 and p.panel.view.at == 1
        await p.press("ctrl+end")
        assert "(2,000/2,000)" in p.screen and "text 2000" in p.screen


async def test_only_rows_in_sight_are_drawn(
    picking: Make, library: Make, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with picking(library([row(n) for n in range(1, 1_001)])) as p:
        await p.settled()
        drawn = 0
        draw = p.panel._painter.draw

        def counted(*args: Any, **more: Any) -> Any:
            nonlocal drawn
            drawn += 1
            return draw(*args, **more)

        monkeypatch.setattr(p.panel._painter, "draw", counted)
        await p.press("pagedown")
        assert 0 < drawn <= 3 * p.panel._list_rows


async def test_search_in_names_and_texts(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(1, name="parser work"), row(2), row(3, name="other")])
    shelf.bodies["/sessions/2.jsonl"] = "we talked about the heliotrope parser today"
    async with picking(shelf) as p:
        await p.settled()
        await p.search("parser")
        assert p.titles == ["parser work", "text 2"]
        assert "⋯" in p.line("text 2") and "parser today" in p.line("text 2")
        p.panel.search_field.clear()
        await p.search('"other"')
        assert p.titles == ["other"]
        p.panel.search_field.clear()
        await p.search("re:helio.rope")
        assert p.titles == ["text 2"]


async def test_hits_are_marked(picking: Make, library: Make, row: Row) -> None:
    async with picking(library([row(1, name="alpha beta")])) as p:
        await p.settled()
        await p.search("beta")
        strips = p.app.screen._compositor.render_strips()
        styles = {s.text.strip(): s.style for strip in strips for s in strip}
        assert styles["beta"] != styles["alpha"]


async def test_a_pattern_that_is_none_yet_is_said_and_the_list_stays(
    picking: Make, library: Make, row: Row
) -> None:
    async with picking(library([row(1)])) as p:
        await p.settled()
        await p.type("re:(te")
        assert p.titles == ["text 1"] and not p.panel.view.stale
        assert "(1/1)" not in p.screen
        await p.search("xt)")
        assert p.titles == ["text 1"] and "(1/1)" in p.screen


async def test_names_are_found_before_files_are_read(
    picking: Make, library: Make, row: Row
) -> None:
    shelf = library([row(1), row(2, name="needle"), row(3)])
    shelf.bodies["/sessions/3.jsonl"] = "a needle in it"
    async with picking(shelf) as p:
        await p.settled()
        shelf.search_gate.clear()
        await p.type("needle")
        await p.until(lambda: p.titles == ["needle"])
        await p.pilot.pause()
        assert "searching …" in p.screen
        shelf.search_gate.set()
        await p.settled()
        assert p.titles == ["needle", "text 3"]


async def test_enter_right_after_typing_opens_the_hit(
    picking: Make, library: Make, row: Row
) -> None:
    async with picking(library([row(1), row(2), row(3, name="wanted")])) as p:
        await p.settled()
        await p.burst(*"wanted", "enter")
        assert await p.picked == "/sessions/3.jsonl"


async def test_a_query_to_begin_with(picking: Make, library: Make, row: Row) -> None:
    async with picking(library([row(1), row(2)]), "text 2") as p:
        await p.until(lambda: p.titles[:1] == ["text 2"] and not p.panel.view.stale)
        assert "> text 2" in p.screen


async def test_a_list_that_cannot_be_read_says_so(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(1)])

    def rows(*, everywhere: bool) -> Any:
        yield row(1)
        raise StorageError("The disk is gone.", hint="Plug it in.")

    shelf.rows = rows
    async with picking(shelf) as p:
        await p.settled()
        assert "The disk is gone. Plug it in." in p.screen and p.titles == ["text 1"]


async def test_a_fault_is_told_and_the_picker_goes_on(
    picking: Make, library: Make, row: Row
) -> None:
    shelf = library([row(1)])

    def rows(*, everywhere: bool) -> Any:
        yield row(1)
        raise RuntimeError("[/] fault")

    shelf.rows = rows
    async with picking(shelf) as p:
        await p.settled()
        await p.until(lambda: "internal error: RuntimeError: [/] fault" in p.screen)
        await p.press("enter")
        assert await p.picked == "/sessions/1.jsonl"


# ---------------------------------------------------------------- sort and filter


async def test_choices_are_shown_and_kept(picking: Make, library: Make, row: Row) -> None:
    choices = PickerChoices()
    rows = [row(1), row(2, name="b", parent="id-3"), row(3)]
    async with picking(library(rows), choices=choices) as p:
        await p.settled()
        assert "Sort: threaded" in p.screen and p.titles == ["text 1", "text 3", "b"]
        await p.press("ctrl+s")
        assert "Sort: recent" in p.screen and p.titles == ["text 1", "b", "text 3"]
        await p.press("ctrl+n")
        assert "Name: named" in p.screen and p.titles == ["b"]
    async with picking(library([row(1)]), choices=choices) as p:
        await p.settled()
        assert "Sort: recent" in p.screen and "no session has a name; ctrl+n" in p.screen


# ---------------------------------------------------------------- rename


async def test_rename(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(1, name="old"), row(2)])
    async with picking(shelf) as p:
        await p.settled()
        await p.press("ctrl+r")
        assert "name: old" in p.screen and "enter saves" in p.screen
        await p.press("ctrl+u")
        await p.type(" new  name [/")
        await p.press("left", "backspace", "enter")
        await p.until(lambda: bool(shelf.done))
        assert shelf.done == [("rename", "/sessions/1.jsonl", "new name /")]
        await p.until(lambda: p.titles[0] == "new name /")
        assert "renamed: new name /" in p.screen and not p.picked.done()


async def test_rename_cancelled_unchanged_or_removed(
    picking: Make, library: Make, row: Row
) -> None:
    shelf = library([row(1, name="old")])
    async with picking(shelf) as p:
        await p.settled()
        await p.press("ctrl+r")
        await p.type("er")
        await p.press("escape")
        assert p.titles == ["old"] and not p.picked.done()
        await p.press("ctrl+r", "enter")
        assert shelf.done == []
        await p.press("ctrl+r", "ctrl+u", "enter")
        await p.until(lambda: p.titles == ["text 1"])
        assert shelf.done == [("rename", "/sessions/1.jsonl", "")]


async def test_the_open_session_is_renamed_through_itself(
    picking: Make, library: Make, row: Row
) -> None:
    shelf = library([row(1)])
    async with picking(shelf, open_path="/sessions/1.jsonl") as p:
        await p.settled()
        assert p.line("text 1").startswith("› ✓ ") and "open here" in p.screen
        await p.press("ctrl+r")
        await p.type("mine")
        await p.press("enter")
        await p.until(lambda: p.titles == ["mine"])
        assert shelf.done == [] and p.app.session.name == "mine"


async def test_a_rename_that_fails_says_why(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(1)])
    shelf.failures["rename"] = SessionLockedError("Another process works on it.")
    async with picking(shelf) as p:
        await p.settled()
        await p.press("ctrl+r")
        await p.type("x")
        await p.press("enter")
        await p.until(lambda: "Another process works on it." in p.screen)
        assert p.titles == ["text 1"]


# ---------------------------------------------------------------- delete


async def test_delete_asks_and_moves_to_the_trash(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(1), row(2), row(3)])
    async with picking(shelf) as p:
        await p.settled()
        await p.press("down", "ctrl+d")
        await p.until(lambda: "Delete this session?" in p.screen)
        assert "text 2" in p.screen and "It is moved to the trash." in p.screen
        await p.press("enter")
        await p.until(lambda: len(p.app._panels) == 1)
        assert shelf.done == [] and len(p.titles) == 3
        await p.press("ctrl+d")
        await p.until(lambda: len(p.app._panels) == 2)
        await p.press("y")
        await p.until(lambda: "moved to the trash: text 2" in p.screen)
        assert shelf.done == [("delete", "/sessions/2.jsonl")]
        assert p.titles == ["text 1", "text 3"] and p.panel.view.at == 1


async def test_without_a_trash_it_asks_again(picking: Make, library: Make, row: Row) -> None:
    shelf = library([row(1)])
    shelf.failures["delete"] = NoTrashError("There is no trash on this system.")
    async with picking(shelf) as p:
        await p.settled()
        for answer in ("n", "y"):
            await p.press("ctrl+d")
            await p.until(lambda: "It is moved" in p.screen)
            await p.press("y")
            await p.until(lambda: "for good?" in p.screen)
            assert "There is no trash on this system." in p.screen
            await p.press(answer)
            await p.until(lambda: len(p.app._panels) == 1)
            if answer == "n":
                await p.until(lambda: "nothing was deleted" in p.screen)
                assert shelf.done == [] and p.titles == ["text 1"]
        await p.until(lambda: p.titles == [])
        assert shelf.done == [("delete for good", "/sessions/1.jsonl")]


async def test_the_open_session_is_never_deleted(
    picking: Make, library: Make, row: Row, tmp_path: Any
) -> None:
    real = tmp_path / "real.jsonl"
    real.write_text("")
    link = tmp_path / "link.jsonl"
    link.symlink_to(real)
    shelf = library([row(1, path=str(link))])
    async with picking(shelf, open_path=str(real)) as p:
        await p.settled()
        await p.press("ctrl+d")
        await p.until(lambda: "the session you are in" in p.screen)
        assert len(p.app._panels) == 1 and shelf.done == []


async def test_ctrl_backspace_deletes_a_word_of_the_search_first(
    picking: Make, library: Make, row: Row
) -> None:
    async with picking(library([row(1)])) as p:
        await p.settled()
        await p.type("text one")
        await p.press("ctrl+backspace")
        assert p.panel.search_field.text == "text " and len(p.app._panels) == 1
        await p.press("ctrl+u", "ctrl+backspace")
        await p.until(lambda: "Delete this session?" in p.screen)


# ---------------------------------------------------------------- looks and safety


@pytest.mark.parametrize("size", [(120, 40), (60, 20), (40, 12), (30, 9), (20, 8), (10, 6)])
async def test_every_line_fits(picking: Make, library: Make, row: Row, size: Any) -> None:
    rows = [row(n, name="日本語の長い名前" * 9, parent=f"id-{n - 1}") for n in range(1, 40)]
    shelf = library([*rows, row(50, first_text=HOSTILE * 20, cwd="/é" * 60, cwd_exists=False)])
    shelf.bodies = {row(50).path: "日本" * 400 + " needle " + "語" * 400}
    choices = PickerChoices(everywhere=True)
    async with picking(shelf, size=size, choices=choices) as p:
        await p.settled()
        await p.press("ctrl+end", "ctrl+p", "ctrl+p")
        await p.search("needle")
        assert len(p.lines) == size[1]
        strips = p.app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {size[0]}
        assert p.app.screen.max_scroll_y == 0
        await p.press("escape", "ctrl+r")
        await p.type("語" * 60)
        assert {s.cell_length for s in p.app.screen._compositor.render_strips()} == {size[0]}


async def test_small_terminals_show_rows(picking: Make, library: Make, row: Row) -> None:
    rows = [row(n) for n in range(1, 30)]
    async with picking(library(rows), size=(40, 12)) as p:
        await p.settled()
        assert sum("text " in line for line in p.lines) == 4
        assert "enter · esc · tab all · ^d delete" in p.screen


@pytest.mark.parametrize("text", BRACKETS)
async def test_square_brackets_are_text(picking: Make, library: Make, row: Row, text: str) -> None:
    rows = [row(1, name=text), row(2, first_text=text), row(3, cwd=f"/home/you/{text}")]
    shelf = library([*rows, row(4)])
    shelf.bodies["/sessions/4.jsonl"] = f"needle {text}"
    async with picking(shelf, size=(120, 40), choices=PickerChoices(everywhere=True)) as p:
        await p.settled()
        once = " ".join(text.split())  # what a conversation begins with is shown in one line
        assert sum(text in line or once in line for line in p.lines) == 3
        await p.search("needle")
        assert sum(text in line for line in p.lines) == 1
        await p.press("ctrl+u", "ctrl+d")
        await p.until(lambda: "Delete this session?" in p.screen)
        assert text in p.screen


async def test_nothing_foreign_reaches_the_terminal(picking: Make, library: Make, row: Row) -> None:
    rows = [row(1, name=HOSTILE), row(2, first_text=HOSTILE, cwd=HOSTILE), row(3)]
    shelf = library(rows)
    shelf.bodies["/sessions/3.jsonl"] = f"{HOSTILE} needle {HOSTILE}"
    shelf.failures["rename"] = StorageError(HOSTILE)
    async with picking(shelf, size=(120, 40), choices=PickerChoices(everywhere=True)) as p:
        await p.settled()
        seen = [p.screen]
        await p.press("ctrl+p")
        seen.append(p.screen)
        p.app.post_message(events.Paste("needle" + HOSTILE))
        await p.pilot.pause()
        seen.append(p.screen)
        await p.press("ctrl+u")
        await p.search("needle")
        seen.append(p.screen)
        await p.press("ctrl+r")
        p.app.post_message(events.Paste(HOSTILE))
        await p.pilot.pause()
        await p.press("enter")
        await p.until(lambda: not p.panel._deeds._busy)
        seen.append(p.screen)
        await p.press("ctrl+d")
        await p.until(lambda: len(p.app._panels) == 2)
        seen.append(p.screen)
        bad = set("\x1b\x9b\x07\r\u202e\x00")
        assert not bad & set("".join(seen)) and "two" in seen[0]


async def test_mouse(picking: Make, library: Make, row: Row) -> None:
    async with picking(library([row(n) for n in range(1, 60)]), size=(80, 40)) as p:
        await p.settled()
        y = next(n for n, line in enumerate(p.lines) if "text 3 " in line)
        await p.pilot.click(offset=(10, y))
        assert p.panel.view.at == 2
        await p.pilot.click(offset=(10, y))
        assert await p.picked == "/sessions/3.jsonl"


# ---------------------------------------------------------------- the command


async def test_resume_opens_the_picker(double: ModuleType, library: Make, row: Row) -> None:
    registry = builtin_registry()
    shelf = library([row(1, cwd="/home/you/project")])
    for command in session_commands(shelf, None):
        registry.add(command)
    app = PiTuiApp(double.SessionDouble(), registry, TuiOptions())
    assert isinstance(app.ui, PicksSessions)
    async with app.run_test(size=(80, 24)) as pilot:
        for character in "/resume text":
            app._key("space" if character == " " else character, character)
        await pilot.press("enter")
        await pilot.pause()
        panel = app._panels[-1]
        assert isinstance(panel, SessionPanel) and panel.search_field.text == "text"
        assert app.editor.buffer.text == ""
        await pilot.press("escape", "escape")
        await pilot.pause()
        await pilot.pause()
        assert app.editor.display and not app._panels
        rows = app.screen._compositor.render_strips()
        screen = "\n".join("".join(segment.text for segment in line) for line in rows)
        assert "resume: nothing was opened" in screen
