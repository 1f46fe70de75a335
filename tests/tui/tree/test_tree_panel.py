import re

import pytest
from rich.cells import cell_len
from rich.color import Color
from textual import events

from pi_tui.core.entries import BranchSummaryEntry, MessageEntry
from pi_tui.core.messages import TextContent, ThinkingContent, ToolCall, UserMessage


async def test_it_opens_in_the_lower_half_with_the_leaf_selected(open_tree):
    async with open_tree(width=120, height=40) as desk:
        title = desk.row_of("── Session Tree ")
        assert title == 18
        assert re.search(r"›.*• \[here\] assistant: done another way", desk.screen)
        assert "(8/8) [default]" in desk.screen
        assert "├⊟ user: fix the lexer" in desk.screen
        assert "└⊟ • user: try another way" in desk.screen
        assert desk.lines()[-3].startswith("── esc back · ? help · z compact")


@pytest.mark.parametrize(("width", "height"), [(120, 40), (60, 20), (40, 12), (30, 8)])
async def test_every_line_fits_every_size(open_tree, width, height):
    async with open_tree(width=width, height=height) as desk:
        for keys in ((), ("v",), ("v",), ("question_mark",), ("escape",), ("s",), ("slash", "x")):
            await desk.press(*keys)
            for strip in desk.strips():
                assert cell_len("".join(segment.text for segment in strip)) == width
        assert "Session Tree" in desk.screen


async def test_a_small_terminal_is_used_whole(open_tree):
    async with open_tree(width=40, height=12) as desk:
        assert desk.row_of("Session Tree") == 1
        assert "[here] assistant" in desk.screen


async def test_the_panel_grows_shrinks_and_takes_everything(open_tree):
    async with open_tree(height=40) as desk:
        await desk.press("plus")
        assert desk.row_of("Session Tree") == 13
        await desk.press("minus", "minus")
        assert desk.row_of("Session Tree") == 23
        await desk.press("w")
        assert desk.row_of("Session Tree") == 1
        await desk.press("w")
        assert desk.row_of("Session Tree") == 23


async def test_the_keys_of_the_reference_move_and_filter(open_tree):
    async with open_tree() as desk:
        view = desk.view
        await desk.press("down")
        assert view.selected_id == "u1"
        await desk.press("up")
        assert view.selected_id == "a5"
        await desk.press("left")
        assert view.selected_id == "u1"
        await desk.press("pagedown")
        assert view.selected_id == "a5"
        for key, mode in (
            ("ctrl+u", "user-only"), ("ctrl+u", "default"), ("ctrl+t", "no-tools"),
            ("ctrl+l", "labeled-only"), ("ctrl+a", "all"), ("ctrl+d", "default"),
            ("ctrl+o", "no-tools"), ("ctrl+shift+o", "default"),
        ):  # fmt: skip
            await desk.press(key)
            assert view.filter == mode
        await desk.press("ctrl+left")
        assert view.selected_id == "u3"
        await desk.press("alt+left")
        assert "+2 • [here] user: try another way" in desk.screen
        await desk.press("ctrl+right")
        assert "+2" not in desk.screen


async def test_letters_are_commands_in_the_list_and_text_in_the_search(open_tree):
    async with open_tree() as desk:
        await desk.press("L")
        assert desk.panel.keyboard == "label"
        await desk.press("escape")
        await desk.press("slash")
        await desk.type("Lexer")
        assert "search: Lexer" in desk.screen
        await desk.searched()
        assert "2 hits" in desk.screen and desk.view.selected_id == "a3"
        await desk.press("alt+n")
        assert desk.view.selected_id == "u2" and desk.panel.keyboard == "search"
        await desk.press("alt+l")
        assert desk.panel.keyboard == "label"
        await desk.press("escape", "n")
        assert desk.view.selected_id == "a3"
        await desk.press("N")
        assert desk.view.selected_id == "u2"


async def test_the_search_finds_commands_paths_and_far_text_and_marks_it(open_tree):
    async with open_tree(width=90) as desk:
        for wanted, entry_id in (
            ("make", "t2"), ("src/parser", "t1"), ("SECRETWORD", "t1"), ('"tests passed"', "t2"),
        ):  # fmt: skip
            await desk.press("slash")
            await desk.type(wanted)
            await desk.searched()
            assert desk.view.selected_id == entry_id, wanted
            await desk.press("escape")
            assert not desk.view.searching
        await desk.press("slash")
        await desk.type("SECRETWORD")
        await desk.searched()
        line = next(line for line in desk.lines() if "SECRETWORD" in line and "›" in line)
        assert "[read: src/parser.py]" in line  # and where it was found, behind
        found = [
            segment
            for segment in desk.strips()[desk.lines().index(line)]
            if "SECRETWORD" in segment.text
        ]
        marked = desk.app.theme_source.colors["searchMatchBg"]
        assert found[0].style.bgcolor == Color.parse(marked)


async def test_escape_clears_the_search_then_closes(open_tree):
    async with open_tree() as desk:
        await desk.press("slash")
        await desk.type("lexer")
        await desk.searched()
        await desk.press("tab", "escape")
        assert not desk.view.searching and desk.view.selected_id == "a3"
        await desk.press("escape")
        assert desk.panel is None and desk.session.requests == []


async def test_a_pattern_that_cannot_be_used_is_told(open_tree):
    async with open_tree() as desk:
        await desk.press("slash")
        await desk.type("re:(")
        desk.panel.search.flush()
        await desk.pilot.pause()
        assert "cannot be used" in desk.screen


async def test_the_label_editor_is_prefilled_and_an_empty_label_removes(open_tree):
    async with open_tree() as desk:
        await desk.press("l")
        await desk.type("My [/]")
        await desk.press("enter")
        assert desk.session.tree.label("a5") == "My [/]"
        assert "[My [/]] " in desk.screen
        await desk.press("T")
        assert "[+label time]" in desk.screen and re.search(r"\[My \[/\] \d\d:\d\d\]", desk.screen)
        await desk.press("l")
        assert "label: My [/]" in desk.screen
        await desk.press("ctrl+u", "enter")
        assert desk.session.tree.label("a5") is None


async def test_the_label_editor_can_be_left(open_tree):
    async with open_tree() as desk:
        await desk.press("l", "x", "escape")
        assert desk.session.tree.label("a5") is None and desk.panel.keyboard == "list"


async def test_the_preview_shows_call_output_numbers_and_scrolls(open_tree):
    async with open_tree(width=140) as desk:
        await desk.press("up")
        await desk.previewed()
        assert "✓ bash $ make test" in desk.screen
        assert "all tests passed" in desk.screen
        await desk.press("up", "up", "up", "up")
        await desk.previewed()
        assert "the parser is fine" in desk.screen.split("│", 1)[1]
        assert "acme/big-1" in desk.screen and "$0.0123" in desk.screen


async def test_a_long_entry_is_scrolled_without_leaving_the_list(open_tree, trees):
    make = trees.Builder()
    make.user("u", "hi")
    make.answer("a", "\n\n".join(f"paragraph {n}" for n in range(80)))
    async with open_tree(make.entries, width=140) as desk:
        await desk.previewed()
        assert "paragraph 0" in desk.screen
        await desk.press("space", "shift+down")
        desk.panel.preview.flush()
        await desk.pilot.pause()
        pane = desk.screen
        assert not re.search(r"paragraph 0\b", pane.split("Session Tree")[1].split("│", 2)[-1])
        assert desk.view.selected_id == "a"


async def test_the_diff_of_an_edit_is_shown_whole(open_tree, trees):
    make = trees.Builder()
    make.user("u", "go")
    make.answer("q", "", ToolCall("c", "edit", {"path": "x.py"}))
    diff = "\n".join(f"+{n} line {n}" for n in range(1, 60))
    make.result("t", "c", "edit", "ok", details={"diff": diff})
    async with open_tree(make.entries, width=140, height=90) as desk:
        await desk.press("w")
        await desk.previewed()
        assert "line 59" in desk.screen


async def test_the_path_to_an_entry_is_shown_and_nothing_moves(open_tree):
    async with open_tree() as desk:
        desk.view.select("a3")
        await desk.press("s")
        desk.panel.preview.flush()
        await desk.pilot.pause()
        assert "fixed the lexer" in desk.screen and "first question" in desk.screen
        assert "another way" not in desk.screen
        assert desk.session.tree.leaf_id == "a5"
        await desk.press("escape")
        assert "› " in desk.screen and desk.view.selected_id == "a3"


async def test_deeds_have_a_key_each(open_tree):
    async with open_tree() as desk:
        session = desk.session
        await desk.press("p")
        assert session.pins == {"a5"} and "[pinned] " in desk.screen
        await desk.press("o")
        assert session.branches.left_out == {"a5"} and "[left out] " in desk.screen
        await desk.press("o")
        assert session.branches.left_out == set()
        await desk.press("c")
        assert desk.ui.copied == ["done another way"]
        await desk.press("ctrl+x")
        assert len(desk.ui.copied) == 2
        await desk.press("h")
        assert "you are on this branch" in desk.screen
        desk.view.select("a3")
        await desk.press("h")
        assert session.branches.hidden == {"u2"}
        assert "fix the lexer" not in desk.screen and "[2 hidden]" in desk.screen
        await desk.press("H")
        assert "[hidden] user: fix the lexer" in desk.screen


async def test_two_branches_are_compared(open_tree):
    async with open_tree() as desk:
        desk.view.select("a3")
        await desk.press("m")
        assert "[marked] " in desk.screen
        desk.view.select("a5")
        await desk.press("d")
        assert "Two branches" in desk.screen and "a3" in desk.screen
        await desk.press("escape")
        assert "Session Tree" in desk.screen
        await desk.press("m")  # another mark: this entry
        await desk.press("d")
        assert "choose another entry" in desk.screen


async def test_fork_compact_and_undo_close_the_tree(open_tree):
    async with open_tree() as desk:
        await desk.press("f")
        assert "a fork begins before a message of yours" in desk.screen
        desk.view.select("u3")
        await desk.press("f")
        assert desk.app.commands == ["/fork u3"] and desk.panel is None
    async with open_tree() as desk:
        desk.view.select("a3")
        await desk.press("z")
        assert "not on the path" in desk.screen
        desk.view.select("u3")
        await desk.press("z")
        assert [one.keep_from for one in desk.session.compactions] == ["u3"]
        assert desk.panel is None
    async with open_tree() as desk:
        await desk.press("u")
        assert desk.session.undone == 1 and desk.panel is None


async def test_the_help_lists_every_key_and_scrolls(open_tree):
    async with open_tree(height=24) as desk:
        await desk.press("question_mark")
        assert "wraps around" in desk.screen
        await desk.press("pagedown", "pagedown", "pagedown")
        assert "these keys" in desk.screen
        await desk.press("q")
        assert "[here]" in desk.screen


async def test_an_unknown_letter_says_what_to_do(open_tree):
    async with open_tree() as desk:
        await desk.press("y")
        assert "/ searches, ? shows the keys" in desk.screen


async def test_keys_can_be_bound_by_the_user(open_tree):
    async with open_tree(keybindings={"app.tree.editLabel": "f2"}) as desk:
        await desk.press("f2")
        assert desk.panel.keyboard == "label"


async def test_the_mouse_selects_folds_wheels_and_goes(open_tree):
    async with open_tree(width=80, height=40) as desk:
        await desk.pilot.click(offset=(20, desk.row_of("fixed the lexer")))
        await desk.pilot.pause()
        assert desk.view.selected_id == "a3"
        y = desk.row_of("⊟ • user: try another way")
        await desk.pilot.click(offset=(3, y))
        await desk.pilot.pause()
        assert "+2" in desk.screen
        await desk.pilot.click(offset=(20, desk.row_of("first question")), times=2)
        await desk.pilot.pause()
        assert "Summarise the branch" in desk.screen


async def test_the_wheel_scrolls_the_list_and_keeps_the_selection(open_tree, trees):
    make = trees.Builder()
    for n in range(100):
        make.user(f"u{n}", f"message {n}")
    async with open_tree(make.entries, width=80, height=24) as desk:
        before = desk.screen
        await desk.pilot._post_mouse_events([events.MouseScrollUp], offset=(10, 10))
        await desk.pilot.pause()
        assert desk.screen != before and desk.view.selected_id == "u99"


async def test_entries_that_arrive_meanwhile_appear(open_tree):
    async with open_tree() as desk:
        entry = MessageEntry(
            id="n1",
            parent_id="a5",
            timestamp="2025-06-15T16:00:00.000Z",
            message=UserMessage("typed meanwhile", 0),
        )
        desk.session.append(entry)
        assert desk.panel.delays.do_now("change")
        await desk.pilot.pause()
        assert "[here] user: typed meanwhile" in desk.screen and desk.view.selected_id == "a5"


PAYLOADS = [
    "a\x1b]52;c;aGk=\x07b", "\x1b[2J\x1b[10A", "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\", "\x9b6n",
    "a\rb\x08c", "‮gnirts", "[@click=app.quit]press[/]", "[/]", "日本語テキスト👩‍👩‍👧 שלום",
    "\x1b]0;no end", "e\u0301\u0301" * 30,
]  # fmt: skip


async def test_hostile_texts_never_leave_their_cells(open_tree, trees, foreign):
    make = trees.Builder()
    for n, payload in enumerate(PAYLOADS * 2):
        make.user(f"u{n}", payload * 3)
        call = ToolCall(f"c{n}", "bash", {"command": payload})
        make.answer(f"q{n}", payload, call)
        make.result(f"t{n}", f"c{n}", payload[:8], payload)
        make.label(f"l{n}", f"u{n}", payload)
    for width in (120, 61, 40):
        async with open_tree(make.entries, width=width, height=70) as desk:
            await desk.press("w")
            for key in ("home", "end", "T", "slash", "e", "alt+s"):
                await desk.press(key)
                await desk.pilot.pause()
                strips = desk.strips()
                assert {strip.cell_length for strip in strips} == {width}
                output = "".join(strip.render(desk.app.console) for strip in strips)
                assert foreign(output) == []


@pytest.fixture
def foreign():
    own = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;id=[^;]*;https?://[!-~]*\x1b\\|\x1b\]8;;\x1b\\")
    bad = r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    return lambda output: re.findall(bad, own.sub("", output))


async def test_texts_are_made_for_the_rows_in_sight_only(open_tree, trees):
    make = trees.Builder()
    for n in range(4000):
        make.user(f"u{n}", f"message {n}")
    async with open_tree(make.entries, width=120, height=40) as desk:
        assert desk.panel.painter.drawn_texts <= 20
        await desk.press("pageup", "pageup", "home")
        assert desk.panel.painter.drawn_texts <= 80


async def test_deep_rows_pan_so_that_their_text_is_seen(open_tree, trees):
    make = trees.Builder()
    at = make.user("r", "root")
    for n in range(60):
        make.user(f"b{n}", f"beside {n}", at=at)
        at = make.user(f"d{n}", f"deep {n}", at=at)
    async with open_tree(make.entries, width=80, height=40, leaf_id="d59") as desk:
        assert re.search(r"› ‹.*user: deep 59", desk.screen)
        await desk.press("home")
        assert re.search(r"^› • user: root", desk.screen, re.MULTILINE)
        assert "‹" not in desk.screen


async def test_an_empty_session_says_so(open_tree):
    async with open_tree([]) as desk:
        assert "the session is empty" in desk.screen
        await desk.press("enter", "l", "p", "c", "s", "m", "d", "h", "escape")
        assert desk.panel is None


async def test_quiet_answers_vanish_and_are_found_as_their_results(open_tree, trees):
    make = trees.Builder()
    make.user("u", "go")
    for n in range(400):
        make.answer(f"q{n}", "", ToolCall(f"c{n}", "read", {"path": f"file{n}.py"}))
        make.result(f"t{n}", f"c{n}", "read", f"content {n}")
    async with open_tree(make.entries) as desk:
        panel = desk.panel
        while desk.view.unread_count:
            assert panel.delays.do_now("read")
        panel.delays.do_now("layout")
        assert len(desk.view) == 401
        await desk.press("slash")
        await desk.type("file123.py")
        await desk.searched()
        assert desk.view.selected_id == "t123"


def side_branches(trees, count):
    """A conversation with a question aside at every second turn: each moves the rest in."""
    make = trees.Builder()
    at = make.user("r", "root")
    for n in range(count):
        make.user(f"b{n}", f"beside number {n} with some more words", at=at)
        at = make.user(f"d{n}", f"deep number {n} with some more words", at=at)
        at = make.user(f"e{n}", f"after number {n} with some more words", at=at)
    return make.entries


@pytest.mark.parametrize(("width", "leaf"), [(52, "e30"), (80, "e3"), (120, "e59")])
async def test_deep_branches_leave_their_rows_readable(open_tree, trees, width, leaf):
    entries = side_branches(trees, 60)
    async with open_tree(entries, width=width, height=40, leaf_id=leaf) as desk:
        panel = desk.panel
        for key in ("up",) * 12 + ("down",) * 3:
            await desk.press(key)
            top = desk.row_of("Session Tree") + 2
            rows = [line[: panel.list.width] for line in desk.lines()[top : top + panel.list.rows]]
            # The gutter takes three tenths at most, and a third of the row is the text at least.
            texts = [row.split("user: ") for row in rows if "number" in row and "[here]" not in row]
            assert max(len(before) for before, _ in texts) <= panel.list.width * 3 // 10 + 6
            assert all(len(text) >= panel.list.width // 3 for _, text in texts)
            selected = next(row for row in rows if row.startswith("›"))
            assert (
                panel.view.selected_id == "r" or f"number {panel.view.selected_id[1:]}" in selected
            )
            on_path = [row for row in rows if "•" in row]
            assert all("deep" in row or "after" in row or "root" in row for row in on_path)


async def test_a_shallow_row_beside_deep_ones_can_still_be_folded(open_tree, trees):
    make = trees.Builder()
    at = make.user("r", "root")
    for n in range(30):
        make.user(f"b{n}", f"beside {n}", at=at)
        at = make.user(f"d{n}", f"deep {n}", at=at)
    make.user("s", "shallow", at="r")
    make.user("s1", "below it", at="s")
    async with open_tree(make.entries, width=80, height=40, leaf_id="b29") as desk:
        await desk.press("down", "down")
        assert desk.view.selected_id == "s"
        y = desk.row_of("user: shallow")
        row = desk.lines()[y]
        assert "user: deep 29" in desk.screen and "⊟" in row
        await desk.pilot.click(offset=(row.index("⊟"), y))
        assert desk.view.row(desk.view.selected_row).hidden == 1
        await desk.press("up")
        y = desk.row_of("user: shallow")
        row = desk.lines()[y]
        assert re.match(r"  ‹⊞ \+1 ", row)
        await desk.pilot.click(offset=(row.index("⊞"), y))
        assert desk.view.row(desk.view.selected_row).hidden == 0


async def test_an_arrow_draws_only_the_lines_that_changed(open_tree, monkeypatch):
    async with open_tree(width=120, height=40) as desk:
        await desk.press("up")
        await desk.previewed()
        panel, asked = desk.panel, []
        refresh = type(panel).refresh

        def recorded(self, *regions, **options):
            asked.extend(regions or ["all"])
            return refresh(self, *regions, **options)

        monkeypatch.setattr(type(panel), "refresh", recorded)
        top = 2 + desk.view.selected_row
        panel.key("up", None)
        assert [(region.y, region.width) for region in asked] == [
            (1, panel.size.width),
            (top - 1, panel.list.width + 1),
            (top, panel.list.width + 1),
        ]
        await desk.pilot.pause()
        assert desk.lines()[desk.row_of("Session Tree") + top - 1].startswith("›")


async def test_marks_are_looked_for_again_only_when_something_changed(open_tree, trees):
    class Counting(trees.Session):
        looked = 0

        @property
        def pins(self):
            type(self).looked += 1
            return frozenset({"u1"})

        @pins.setter
        def pins(self, value):
            pass

    session = Counting(trees.small())
    async with open_tree(session=session) as desk:
        assert "[pinned]" in desk.screen
        for _ in range(2):
            await desk.press("escape")
            desk.app.navigator.open()
            await desk.pilot.pause()
        assert "[pinned]" in desk.screen and Counting.looked == 1
        session.set_label("a2", "good")
        desk.panel.delays.do_now("change")
        assert Counting.looked == 2


@pytest.mark.parametrize("way", ["in sight", "folded", "hidden", "searched"])
async def test_a_key_on_a_summary_goes_to_the_end_of_its_branch(open_tree, trees, way):
    entries = trees.small()
    summary = BranchSummaryEntry(
        id="s1", parent_id="a2", timestamp=entries[-1].timestamp, from_id="a3", summary="learnt"
    )
    async with open_tree([*entries, summary]) as desk:
        if way in ("folded", "hidden"):
            desk.view.select("u2")
            await desk.press("ctrl+left" if way == "folded" else "h")
        elif way == "searched":
            await desk.press("slash")
            await desk.type("learnt")
            await desk.searched()
            await desk.press("tab")
        desk.view.select("s1")
        desk.panel.show()
        await desk.pilot.pause()
        assert "j its branch" in desk.screen
        await desk.press("j")
        assert desk.view.selected_id == "a3" and "fixed the lexer" in desk.screen
        await desk.press("j")
        assert "only branch summaries have an origin" in desk.screen


@pytest.mark.parametrize("width", [120, 60, 40])
async def test_the_help_line_names_what_is_done_to_entries_first(open_tree, width):
    async with open_tree(width=width) as desk:
        line = next(line for line in desk.lines() if "esc back" in line)
        named = ("? help", "z compact", "p pin", "l label", "c copy", "f fork", "o leave out")
        wanted = named if width == 120 else named[:4] if width == 60 else named[:2]
        assert all(one in line for one in wanted), line


@pytest.mark.parametrize("width", [120, 60, 40])
async def test_the_help_can_be_read_in_full_at_every_width(open_tree, width):
    async with open_tree(width=width, height=20) as desk:
        await desk.press("question_mark")
        seen, before = [], None
        while (lines := desk.lines()) != before:  # until the end of the page
            seen += [line for line in lines if line not in seen]
            before = lines
            await desk.press("pagedown")
        text = " ".join(" ".join(seen).split())
        assert "…" not in text.replace("searching …", "")
        for sentence in (
            "Letters are commands in the list, with Alt everywhere",
            "re:pattern",
            "as in /resume",
        ):
            assert sentence in text
        said = " ".join(part for keys, part in desk.panel.tree_keys.help_rows())
        words = set(" ".join(line[line.rfind("  ") :] for line in seen).split())
        assert set(said.split()) <= words | set(text.split())


async def test_alt_with_a_letter_is_a_command_everywhere(open_tree):
    async with open_tree() as desk:
        await desk.press("alt+p")
        assert desk.session.pins == {"a5"}
        await desk.press("slash", "alt+p")
        assert desk.session.pins == set()


async def test_thinking_is_found_and_scattered_letters_in_sentences_are_not(open_tree, trees):
    make = trees.Builder()
    make.user("u1", "which goes on and says something of interest")
    thought = (ThinkingContent("a zebrafish"), TextContent("swimming"))
    make.answer("a1", content=thought)
    make.answer("a2", "", ToolCall("c", "bash", {"command": "systemctl mask"}))
    make.result("t2", "c", "bash", "which goes on and says something too")
    make.label("l1", "a1", "my system")
    async with open_tree(make.entries) as desk:
        for query, hits in (("zebrafish", ["a1"]), ("systm", ["a1", "t2"]), ("sysom", [])):
            await desk.press("slash")
            await desk.type(query)
            await desk.searched()
            found = [row.entry_id for row in map(desk.view.row, range(len(desk.view))) if row.hit]
            assert found == hits, query
            await desk.press("escape")


async def test_a_search_that_has_ended_says_so(open_tree):
    async with open_tree() as desk:
        await desk.press("slash")
        await desk.type("lexer")
        await desk.searched()
        assert "2 hits (" in desk.screen


async def test_the_preview_names_its_own_key_for_more(open_tree, trees):
    make = trees.Builder()
    make.answer("a1", "\n\n".join(f"line {n}" for n in range(99)))
    async with open_tree(make.entries, width=120) as desk:
        await desk.previewed()
        assert "↓ more (space)" in desk.screen and "jump to latest" not in desk.screen


@pytest.mark.parametrize("key", ["p", "o", "z"])
async def test_what_is_for_the_path_only_is_refused_elsewhere_in_few_words(open_tree, key):
    async with open_tree(width=40, height=12) as desk:
        desk.view.select("a3")
        await desk.press(key)
        assert "not on the path here; go there first" in desk.screen
        assert desk.session.pins == set() and desk.session.branches.left_out == set()
        assert desk.session.compactions == []
