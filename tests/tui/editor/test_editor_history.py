"""The history behind Up: the prompts of the branch, and those typed in this run."""

from __future__ import annotations

from pi_tui.tui.editor.buffer import EditorBuffer
from pi_tui.tui.editor.history import PromptHistory
from pi_tui.tui.editor.widget import PromptEditor

LONG = "\n".join(f"line {n}" for n in range(30))


def walked(history: PromptHistory, buffer: EditorBuffer) -> list[str]:
    """What Up shows, key by key."""
    texts = []
    while history.previous(buffer):
        texts.append(buffer.expanded())
    history.leave()
    buffer.forget()
    return texts


def sent(editor: PromptEditor, text: str) -> None:
    """Type or paste a text, and send it."""
    editor.buffer.paste(text)
    editor.history.add(editor.buffer.snapshot(), editor.buffer.expanded())
    editor.buffer.forget()


def test_what_was_typed_in_this_run_survives_another_branch() -> None:
    editor = PromptEditor(lambda name: None)  # type: ignore[arg-type, return-value]
    editor.history = PromptHistory(["old 1", "old 2"])
    for text in ("on both", "left", LONG):
        sent(editor, text)
    editor.history = PromptHistory(["old 1", "on both", "elsewhere", LONG])
    assert walked(editor.history, editor.buffer) == [LONG, "left", "on both", "elsewhere", "old 1"]
    sent(editor, "newest")
    editor.history = PromptHistory(["old 1"])
    assert walked(editor.history, editor.buffer) == [
        "newest", LONG, "left", "on both", "old 1",
    ]  # fmt: skip


def test_a_long_paste_of_this_run_is_still_collapsed() -> None:
    editor = PromptEditor(lambda name: None)  # type: ignore[arg-type, return-value]
    sent(editor, LONG)
    editor.history = PromptHistory([LONG])
    assert editor.history.previous(editor.buffer)
    assert len(editor.buffer.text) == 1 and editor.buffer.expanded() == LONG
    assert not editor.history.previous(editor.buffer)


def test_the_beginning_of_a_branch_comes_later_and_keeps_the_place() -> None:
    buffer, history = EditorBuffer(), PromptHistory(["c"])
    history.add("typed")
    assert history.previous(buffer) and history.previous(buffer) and buffer.text == "c"
    history.extend_back(["a", "typed", "b"])
    assert history.previous(buffer) and buffer.text == "b"
    assert history.previous(buffer) and buffer.text == "a"
    assert not history.previous(buffer)
