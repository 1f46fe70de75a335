"""The log of compactions, the estimator over a vocabulary, and the texts of summary requests."""

from __future__ import annotations

import json
import os
import sys

import pytest
from msgspec import structs

from pi_tui.agent.compaction_log import CompactionLog
from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.files import FileLists, file_lists_text
from pi_tui.core.compaction.parts import bounded_text, fitting_lists_text, high_tokens, summary_room
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.compaction.prompts import instructions, request_text, without_file_lists
from pi_tui.core.events import Notice
from pi_tui.core.messages import AssistantMessage, ImageContent, TextContent, UserMessage
from pi_tui.core.models import Model
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.tiktoken_estimator import (
    TiktokenEstimator,
    find_vocabulary,
    load_vocabulary,
)

MANUAL = CompactRequest("manual")


# ---------------------------------------------------------------- the log


@pytest.mark.parametrize("texts", [False, True])
async def test_the_log_has_the_facts_and_texts_only_when_asked(rig, tmp_path, texts):
    rig.store_talk(15)
    rig.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
    rig.provider.add("THE NOTES", " ")
    session = rig.session()
    path = tmp_path / "log.jsonl"
    log = CompactionLog(path, print, texts=texts, now_ms=rig.clock.now_ms)
    session.subscribe(log)
    await session.compact(MANUAL)
    await session.compact(structs.replace(MANUAL, keep_tokens=1))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["compaction_start", "part", "compaction_end"]
    end = lines[-1]
    assert end["time"].endswith("Z") and end["result"]["tokensBefore"] > 1000
    assert end["result"]["summaryChars"] == 9
    assert ("THE NOTES" in path.read_text()) == texts
    assert "question of turn" not in path.read_text()


async def test_a_failure_is_logged_with_its_words(rig, tmp_path):
    rig.store_talk(15)
    rig.provider.add(" ")
    session = rig.session()
    session.subscribe(CompactionLog(tmp_path / "log.jsonl", print))
    await session.compact(structs.replace(MANUAL, keep_tokens=400))
    end = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert "without any text" in end["errorMessage"] and end["tokensBefore"] > 1000


async def test_a_log_that_cannot_be_written_any_more_says_so_once(rig, tmp_path):
    rig.store_talk(15)
    rig.provider.add("notes")
    session = rig.session()
    path = tmp_path / "logs" / "log.jsonl"
    path.parent.mkdir()
    session.subscribe(CompactionLog(path, lambda text: session.tell("warning", text)))
    path.unlink()
    path.parent.rmdir()
    assert (await session.compact(structs.replace(MANUAL, keep_tokens=400))).kind == "done"
    (notice,) = rig.of(Notice)
    assert notice.level == "warning" and str(path) in notice.text and "No such file" in notice.text


def test_the_log_is_opened_at_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "log.jsonl"
    CompactionLog(path, print)
    assert path.read_bytes() == b"" and path.stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path, tmp_path / "missing" / "log", tmp_path / "pipe"):
        with pytest.raises(OSError):
            CompactionLog(bad, print)


# ---------------------------------------------------------------- the estimator


class Words:
    """A vocabulary in which each word is a token."""

    def __init__(self):
        self.texts = []

    def encode_ordinary(self, text):
        self.texts.append(text)
        return list(range(len(text.split())))


def test_characters_count_until_the_vocabulary_is_there(tmp_path):
    words = Words()
    estimator = TiktokenEstimator(tmp_path, load=lambda file: words)
    message = UserMessage("one two three four five", 0)
    assert estimator.message_tokens(message) == CharsEstimator(cjk=True).message_tokens(message)
    assert not estimator.loaded
    estimator.start_loading()
    estimator.start_loading()
    estimator._thread.join(5)
    assert estimator.loaded and estimator.load()
    assert estimator.message_tokens(message) == 6 + 4  # a tenth more, and the frame
    assert estimator.message_tokens(message) == 10 and len(words.texts) == 1  # counted once
    assert estimator.message_tokens(UserMessage("", 0)) == 0
    image = UserMessage((ImageContent("aGk=", "image/png"),), 0)
    assert estimator.message_tokens(image) == 1320 + 4


def test_long_and_broken_texts_are_counted(tmp_path):
    words = Words()
    estimator = TiktokenEstimator(tmp_path, load=lambda file: words)
    estimator.load()
    assert estimator.message_tokens(UserMessage("a " * 50_000, 0)) == 55_000 + 4
    assert max(map(len, words.texts)) <= 20_000
    assert estimator.message_tokens(UserMessage("half \ud800 pair", 0)) > 0


def test_without_a_vocabulary_characters_do(tmp_path):
    for content in (None, b"not the file"):
        file = tmp_path / "vocabulary"
        if content is not None:
            file.write_bytes(content)
        estimator = TiktokenEstimator(file)
        assert estimator.load() is False
        assert estimator.message_tokens(UserMessage("12345678", 0)) == 2


def test_the_real_vocabulary_is_found_and_read():
    file = find_vocabulary()
    assert file is not None
    assert "litellm" not in sys.modules
    encoding = load_vocabulary(file)
    assert encoding is not None
    text = "def add(a, b):\n    return a + b\n"
    assert 10 <= len(encoding.encode_ordinary(text)) <= 14
    assert "".join(encoding.decode([t]) for t in encoding.encode_ordinary(text)) == text
    assert len(encoding.encode_ordinary("<|endoftext|>")) > 1  # never a special token


# ---------------------------------------------------------------- the texts of requests


def test_a_bounded_text_fits_whatever_its_script():
    for text in ("x" * 9000, "漢" * 9000, "漢" * 900 + "x" * 8100, "x" * 8100 + "漢" * 900, ""):
        cut = bounded_text(text, 500)
        assert high_tokens(cut) <= 500
        assert not text or "left out" in cut
    assert bounded_text("short", 500) == "short"


def test_the_room_leaves_a_quarter_for_the_answer_at_most():
    model = Model(provider="p", id="m", api="scripted", context_window=8_000, max_tokens=64_000)
    assert summary_room(model).output_tokens == 2_000
    assert summary_room(model, 500).output_tokens == 500
    assert summary_room(structs.replace(model, context_window=2_000)).too_small


def test_file_lists_fit_and_count_what_is_missing():
    few = FileLists(("a",), ("b",))
    assert fitting_lists_text(few, 1000) == file_lists_text(few)
    many = FileLists(
        tuple(f"read/{n}.py" for n in range(5000)), tuple(f"mod/{n}.py" for n in range(5000))
    )
    text = fitting_lists_text(many, 2000)
    assert high_tokens(text) <= 2000
    assert "mod/0.py" in text and "more, named in the session file" in text


def test_only_whole_lists_are_taken_out_of_a_summary():
    block = "\n\n<read-files>\na\nb\n</read-files>\n\n<modified-files>\nc\n</modified-files>"
    assert without_file_lists("notes" + block) == "notes"
    assert without_file_lists("one" + block + "\n\nmore") == "one\n\nmore"
    for kept in ("the tag <read-files> is ours", "an open\n<read-files>\nx", "</read-files>"):
        assert without_file_lists(kept) == kept


def test_the_instructions_ask_for_the_sections():
    for has_previous in (False, True):
        text = instructions("compaction", has_previous=has_previous, focus="MY FOCUS")
        at = [
            text.index(heading)
            for heading in (
                "## Goal", "## Constraints & Preferences", "## Progress", "### Done",
                "### In Progress", "### Blocked", "## Key Decisions", "## Next Steps",
                "## Critical Context",
            )
        ]  # fmt: skip
        assert at == sorted(at) and text.endswith("MY FOCUS")
        assert ("<previous-summary>" in text) == has_previous
    branch = instructions("branch", has_previous=False)
    assert "## Next Steps" in branch and "## Critical Context" not in branch
    assert "MY FOCUS" in instructions("turn-prefix", has_previous=False, focus="MY FOCUS")


def test_a_request_frames_conversation_then_summary_then_prompt():
    text = request_text("talk", "prompt", previous_summary="before")
    assert text == (
        "<conversation>\ntalk\n</conversation>\n\n<previous-summary>\nbefore\n"
        "</previous-summary>\n\nprompt"
    )


def test_an_answer_that_is_estimated_is_counted_whole(tmp_path):
    words = Words()
    estimator = TiktokenEstimator(tmp_path, load=lambda file: words)
    estimator.load()
    answer = AssistantMessage(
        content=(TextContent("a b"), TextContent("c")), api="a", provider="p", model="m",
        usage=None, stop_reason="stop", timestamp=0,
    )  # fmt: skip
    assert estimator.message_tokens(answer) == 4 + 4
