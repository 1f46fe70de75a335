"""What the keys do, in words, for `/hotkeys`."""

from __future__ import annotations

from pi_tui.tui.keys import KeyMap

_WORDS: dict[str, str] = {
    "tui.input.submit": "send; while the agent works: steer it",
    "app.message.followUp": "send when the agent has finished",
    "app.message.dequeue": "take queued messages back into the editor",
    "tui.input.newLine": "new line",
    "app.interrupt": "interrupt, close a list; twice: see settings",
    "app.clear": "copy what is selected, or clear the editor; twice: exit",
    "app.exit": "exit when the editor is empty",
    "app.suspend": "suspend",
    "app.editor.external": "edit the text in the external editor",
    "app.message.copy": "copy the last answer",
    "app.tools.expand": "expand or collapse all tool outputs",
    "app.thinking.toggle": "show or hide thinking",
    "app.thinking.cycle": "next thinking level",
    "app.model.select": "choose the model",
    "app.model.cycleForward": "next model",
    "app.model.cycleBackward": "previous model",
    "tui.altScreen.pageUp": "transcript: page up",
    "tui.altScreen.pageDown": "transcript: page down",
    "tui.altScreen.previousPrompt": "transcript: message before",
    "tui.altScreen.nextPrompt": "transcript: message after",
    "tui.altScreen.top": "transcript: first line",
    "tui.altScreen.bottom": "transcript: last line",
    "tui.altScreen.search": "search the transcript, folded parts too",
    "tui.altScreen.searchNext": "search: next hit",
    "tui.altScreen.searchPrevious": "search: previous hit",
    "tui.altScreen.focusPrevious": "mark the block above that can be opened",
    "tui.altScreen.focusNext": "mark the block below that can be opened",
    "tui.block.previous": "marked block: the one above",
    "tui.block.next": "marked block: the one below",
    "tui.block.toggle": "marked block: open or close it",
    "tui.block.copy": "marked block: copy all of it",
    "tui.block.origin": "marked branch summary: to the branch it came from, in the tree",
    "tui.block.leave": "marked block: back to the editor",
    "tui.input.tab": "complete a command or a path; in the list of sessions: this folder or all",
    "app.session.new": "new session",
    "app.session.resume": "open another session",
    "app.session.rename": "in the list of sessions: rename",
    "app.session.delete": "in the list of sessions: delete, after asking",
    "app.session.toggleSort": "in the list of sessions: threads, newest, best hits first",
    "app.session.toggleNamedFilter": "in the list of sessions: only those with a name",
    "app.session.togglePath": "in the list of sessions: show where they are",
    "tui.editor.cursorUp": "line up; in the first line: earlier prompt",
    "tui.editor.cursorDown": "line down; in the last line: later prompt",
    "tui.editor.cursorWordLeft": "word left",
    "tui.editor.cursorWordRight": "word right",
    "tui.editor.cursorLineStart": "start of the line",
    "tui.editor.cursorLineEnd": "end of the line",
    "tui.editor.jumpForward": "jump to the next occurrence of a character",
    "tui.editor.jumpBackward": "jump to the previous occurrence of a character",
    "tui.editor.deleteWordBackward": "delete the word before the cursor",
    "tui.editor.deleteWordForward": "delete the word after the cursor",
    "tui.editor.deleteToLineStart": "delete to the start of the line",
    "tui.editor.deleteToLineEnd": "delete to the end of the line",
    "tui.editor.yank": "insert what was deleted last",
    "tui.editor.yankPop": "then: what was deleted before that",
    "tui.editor.undo": "undo",
}


def key_rows(keys: KeyMap) -> list[tuple[str, str]]:
    """The keys that work here, as (keys, what they do); actions without a key are left out."""
    return [
        (", ".join(keys.keys(action)), words)
        for action, words in _WORDS.items()
        if keys.keys(action)
    ]
