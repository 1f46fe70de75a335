"""Print mode: what stands on which stream, and with which exit code it ends."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.errors import ModelError
from pi_tui.core.events import ActivityChanged, AutoRetryStart, CompactionEnd, Notice
from pi_tui.core.messages import ImageContent
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.print_mode import run_print


async def run(session: Any, *texts: str, stdout: Any = None) -> tuple[int, str, str]:
    out, err = stdout or io.StringIO(), io.StringIO()
    code = await run_print(session, [Prompt(t) for t in texts or ("hi",)], out, err)
    return code, "" if stdout else out.getvalue(), err.getvalue()


async def test_only_the_final_text_is_printed(played: Any, answering: Any) -> None:
    async def talk(session: Any, _: str) -> None:
        session.say("let me look", "toolUse")
        session.emit(Notice("warning", "something odd"))
        session.say("**done**\n\x1b[31mred")

    code, out, err = await run(played(talk))
    assert (code, out, err) == (0, "**done**\n\x1b[31mred\n", "pi-tui: warning: something odd\n")


async def test_a_terminal_gets_safe_text(played: Any, answering: Any, terminal: Any) -> None:
    code, _, err = await run(played(answering("a\x1b]0;x\x07b\x1b[31mc\n")), stdout=terminal)
    assert (code, terminal.getvalue(), err) == (0, "abc\n", "")


@pytest.mark.parametrize(
    ("text", "reason", "error", "out", "said"),
    [
        ("part", "length", None, "part\n", "pi-tui: error: the answer was cut at the output limit"),
        ("part", "error", "no key \x1b[31m", "", "pi-tui: error: no key\n"),
        ("", "error", None, "", "pi-tui: error: the model request failed\n"),
        ("part", "aborted", None, "", "pi-tui: error: the run was aborted\n"),
    ],
)
async def test_runs_that_did_not_end_well(
    played: Any, answering: Any, text: str, reason: str, error: str | None, out: str, said: str
) -> None:
    code, printed, err = await run(played(answering(text, reason, error)))
    assert (code, printed) == (1, out)
    assert err.startswith(said)


async def test_an_empty_answer_and_none_at_all(played: Any, answering: Any) -> None:
    async def nothing(session: Any, _: str) -> None: ...

    assert await run(played(answering(""))) == (
        0,
        "",
        "pi-tui: warning: the model gave an empty answer\n",
    )
    assert await run(played(nothing)) == (
        1,
        "",
        "pi-tui: error: the run ended without an answer\n",
    )


async def test_prompts_follow_each_other_and_stop_at_a_failure(played: Any, answering: Any) -> None:
    session = played(answering("one"), answering("two"))
    assert await run(session, "a", "b") == (0, "two\n", "")
    assert [text for text, _ in session.prompts] == ["a", "b"]

    session = played(answering("one"), answering("x", "error", "broken"), answering("three"))
    code, out, err = await run(session, "a", "b", "c")
    assert (code, out) == (1, "")
    assert err == "pi-tui: error: broken\npi-tui: 1 further message was not sent\n"
    assert len(session.prompts) == 2
    assert session.listeners == []


async def test_a_retried_answer_counts_by_its_last_attempt(played: Any) -> None:
    async def retry(session: Any, _: str) -> None:
        session.say("", "error", "overloaded")
        session.emit(AutoRetryStart(1, 3, 2500, "overloaded"))
        session.say("fine")

    assert await run(played(retry)) == (
        0,
        "fine\n",
        "pi-tui: warning: overloaded (attempt 1 of 3 in 2.5 s)\n",
    )


async def test_errors_are_worded_once(played: Any) -> None:
    async def fail(session: Any, _: str) -> None:
        session.emit(CompactionEnd("threshold", None, error_message="no room"))
        session.emit(Notice("error", "no key for acme"))
        raise ModelError("no key for acme")

    code, out, err = await run(played(fail))
    assert (code, out) == (1, "")
    assert err == "pi-tui: error: compaction failed: no room\npi-tui: error: no key for acme\n"


async def test_images_go_along(played: Any, answering: Any) -> None:
    session = played(answering("ok"))
    image = ImageContent("QQ==", "image/png")
    await run_print(session, [Prompt("see", (image,))], io.StringIO(), io.StringIO())
    assert session.prompts == [("see", (image,))]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_ends_the_run_and_is_the_exit_code(
    played: Any, number: int, code: int
) -> None:
    async def interrupted(session: Any, _: str) -> None:
        os.kill(os.getpid(), number)
        await session.aborted.wait()
        session.say("part", "aborted")

    before = signal.getsignal(number)
    session = played(interrupted)
    assert await run(session, "a", "b") == (
        code,
        "",
        "pi-tui: stopped; this session has no file, so nothing of it is kept\n"
        "pi-tui: 1 further message was not sent\n",
    )
    assert session.aborts == 1
    assert len(session.prompts) == 1
    assert signal.getsignal(number) is before


async def test_what_begins_after_the_abort_is_aborted_too(played: Any) -> None:
    async def two_steps(session: Any, _: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await session.aborted.wait()
        session.aborted.clear()
        session.emit(ActivityChanged("retrying"))
        await session.aborted.wait()

    session = played(two_steps)
    assert (await run(session))[0] == 143
    assert session.aborts == 2


async def test_a_second_signal_ends_the_waiting(played: Any) -> None:
    async def deaf(session: Any, _: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await session.aborted.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await session.never.wait()

    import asyncio

    session = played(deaf)
    session.never = asyncio.Event()
    assert (await run(session))[0] == 143


async def test_an_ignored_signal_stays_ignored(played: Any, answering: Any) -> None:
    async def hangup(session: Any, _: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        session.say("still here")

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert await run(played(hangup)) == (0, "still here\n", "")
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_other_exceptions_come_through(played: Any) -> None:
    async def bug(session: Any, _: str) -> None:
        raise KeyError("bug")

    session = played(bug)
    with pytest.raises(KeyError):
        await run(session)
    assert session.listeners == []


async def test_a_closed_pipe_is_quiet(played: Any, answering: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        assert await run(played(answering("text")), stdout=out) == (0, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_full_disk_is_said(played: Any, answering: Any) -> None:
    with Path("/dev/full").open("w") as out:
        code, _, err = await run(played(answering("text")), stdout=out)
    assert code == 1
    assert err == "pi-tui: error: the output could not be written: no space left on device\n"


async def test_text_that_has_no_encoding_is_replaced(
    played: Any, answering: Callable[..., Any], tmp_path: Path
) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as out:
        assert (await run(played(answering("ä\udc80")), stdout=out))[0] == 0
    assert (tmp_path / "out").read_bytes() == b"??\n"


@pytest.mark.parametrize(
    ("name", "words"), [("here", "the session keeps what was done"), ("gone", "nothing was done")]
)
async def test_what_is_kept_after_a_signal_is_what_is_in_the_file(
    played: Any, tmp_path: Path, name: str, words: str
) -> None:
    async def interrupted(session: Any, _: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await session.aborted.wait()
        session.say("part", "aborted")

    (tmp_path / "here").touch()
    session = played(interrupted)
    session.store.path = str(tmp_path / name)
    assert words in (await run(session))[2]
