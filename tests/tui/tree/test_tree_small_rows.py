"""Deep, marked and labelled rows: the selected one's text can be read at every size."""

import pytest

from pi_tui.tui.tree.row_room import RowNeeds, fitting, share

SIZES = [(120, 40), (60, 20), (40, 12)]


def nested(trees, forks=40):
    make = trees.Builder()
    at = make.answer("a", "base")
    for n in range(forks):
        make.user(f"x{n}", "dead end", at=at)
        make.user(f"u{n}", f"way {n} on", at=at)
        at = make.answer(f"a{n}", f"readable answer {n}")
    return make.entries


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("marked", [False, True])
async def test_the_text_of_the_selected_row_is_readable_forty_forks_deep(
    open_tree, trees, size, marked
):
    width, height = size
    async with open_tree(nested(trees), width=width, height=height) as desk:
        if marked:
            await desk.press("p", "o", "m", "l")
            await desk.type("a label with many words in it")
            await desk.press("enter")
        for entry_id in ("a39", "u39", "a20", "u3"):
            desk.view.select(entry_id)
            desk.panel.show()
            await desk.pilot.pause()
            row = next(line for line in desk.lines() if line.startswith("› "))
            role = "assistant: re" if entry_id.startswith("a") else "user: way"
            assert role in row, row
        if marked:
            desk.view.select("a39")
            desk.panel.show()
            await desk.pilot.pause()
            row = next(line for line in desk.lines() if line.startswith("› "))
            assert "[here]" in row and "[mpo]" in row, row
            assert width == 40 or "[a lab" in row, row


def test_columns_go_before_text_steps_before_marks():
    needs = RowNeeds(steps=6, beside=9, marks=20, least_marks=12, text=60, columns=14)
    assert share(120, needs, selected=True).columns
    without = share(80, needs, selected=True)
    assert not without.columns and without.steps == 6 and without.marks >= 20
    tight = share(48, needs, selected=True)
    assert tight.steps < 6 and tight.marks >= 12
    assert share(48, needs, selected=False).steps == 6  # others stay in line


def test_marks_become_letters_and_the_label_is_cut():
    marks = [("[a long label] ", "warning"), ("[marked] ", "accent"), ("[pinned] ", "accent")]
    assert fitting(marks, 40) == marks
    assert "".join(text for text, _ in fitting(marks, 18)) == "[a long la…] [mp] "
    assert "".join(text for text, _ in fitting(marks, 9)) == "[mp] "
    assert fitting(marks, 3) == []
