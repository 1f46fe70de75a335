"""The JSON stream of the program: nothing in the file that was not announced, blocks in order."""

from __future__ import annotations

import json
import signal

import pytest


def lines_of(output):
    return [json.loads(line) for line in output.splitlines()]


def announced(lines):
    return [line["entry"] for line in lines if line["type"] == "entry_appended"]


def steps(lines):
    return [line["assistantMessageEvent"] for line in lines if line["type"] == "message_update"]


def brief(lines):
    """The types of the steps, without deltas."""
    return [s["type"] for s in steps(lines) if not s["type"].endswith("_delta")]


@pytest.mark.parametrize("model", ["chat/m", "messages/m"])
def test_every_entry_is_announced_and_every_block_has_two_ends(program, model):
    (program.project / "a.txt").write_text("two\n")
    done = program.run("--mode", "json", "--model", model, "--name", "mine", "change it")
    lines = lines_of(done.stdout)
    (path,) = program.session_files()
    assert [lines[0], *announced(lines)] == lines_of(path.read_bytes())
    assert announced(lines)[0]["type"] == "session_info"
    text, call = ["text_start", "text_end"], ["toolcall_start", "toolcall_end"]
    one = [["start", *text, *call, "done"], ["start", *call, "done"]]
    assert brief(lines) == [*one[0], *one[1], *one[1], "start", *text, "done"]
    assert all(isinstance(step["contentIndex"], int) for step in steps(lines))
    usage = [line["usage"] for line in lines if line["type"] == "message_update"][-1]
    last = [line["message"] for line in lines if line["type"] == "message_end"][-1]
    assert usage == last["usage"]
    assert usage["totalTokens"] > 0


def test_a_refused_request_is_an_error_in_the_stream(program):
    done = program.run("--mode", "json", "--no-session", "refuse")
    lines = lines_of(done.stdout)
    assert done.returncode == 1
    assert brief(lines) == ["start", "error"]
    last = [line["message"] for line in lines if line["type"] == "message_end"][-1]
    assert steps(lines)[-1]["errorMessage"] == last["errorMessage"]


def test_a_stopped_answer_ends_its_block_and_then_itself(program):
    child = program.start("--mode", "json", "--no-session", "slowly")
    first = []
    for line in child.stdout:
        first.append(line)
        if b"text_delta" in line:
            break
    child.send_signal(signal.SIGTERM)
    rest, errors = child.stdout.read(), child.stderr.read()  # some of it is buffered here
    assert child.wait(timeout=60) == 143
    lines = lines_of(b"".join(first) + rest)
    assert brief(lines) == ["start", "text_start", "text_end", "error"]
    assert steps(lines)[-1] == {"type": "error", "contentIndex": 0, "reason": "aborted"}
    assert b"no file, so nothing of it is kept" in errors


def test_commands_tell_facts_and_another_session_its_header(program):
    program.run("-p", "hello")
    done = program.run(
        "--mode", "json", "--continue", "--name", "mine", "/tree --dump", "/session", "/new", "hi"
    )
    lines = lines_of(done.stdout)
    assert announced(lines)[0]["name"] == "mine"
    tree, facts = (line["data"] for line in lines if line["type"] == "command_output")
    before, after = program.session_files()
    stored = lines_of(before.read_bytes())
    assert [node["id"] for node in tree["nodes"]] == [entry["id"] for entry in stored[1:]]
    assert (facts["name"], facts["messages"]["user"]) == ("mine", 1)
    headers = [line for line in lines if line["type"] == "session"]
    new = lines_of(after.read_bytes())
    assert headers == [stored[0], new[0]]
    assert announced(lines)[1:] == new[1:]


def test_after_two_dashes_everything_is_a_message(program):
    done = program.run("-p", "--", "--weird")
    assert (done.returncode, done.stdout) == (0, b"Hello from the server.\n")
    assert program.messages()[1]["content"] == [{"type": "text", "text": "--weird"}]


def test_piped_garbage_is_refused(program):
    done = program.run("-p", "what is this?", stdin=b"\x7fELF\0\0\1")
    assert done.returncode == 2
    assert done.stderr.startswith(b"pi-tui: standard input is not UTF-8 text.")
    assert not program.requests()
