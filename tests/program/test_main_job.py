"""A prompt that reads, edits and runs something, over every wire; output, exit codes, sessions."""

from __future__ import annotations

import json
import os
import stat

import pytest


@pytest.mark.parametrize("model", ["chat/m", "messages/m", "lite/openai/m"])
def test_a_prompt_changes_a_real_file(program, model):
    (program.project / "a.txt").write_text("one\ntwo\nthree\n")
    done = program.run("-p", "--model", model, "please change it")
    assert done.stdout.decode() == "Changed **two** to `TWO`.\n"
    assert (done.returncode, done.stderr) == (0, b"")
    assert (program.project / "a.txt").read_text() == "one\nTWO\nthree\n"
    roles = [message["role"] for message in program.messages()]
    assert roles == ["system", "user", *["assistant", "toolResult"] * 3, "assistant"]
    shell = program.messages()[-2]["content"][0]["text"]
    assert "TWO" in shell and model.partition("/")[2] in shell
    (path,) = program.session_files()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_continue_sends_what_was_said_before(program):
    program.run("-p", "first question")
    done = program.run("-p", "--continue", "second question")
    assert done.returncode == 0
    sent = program.requests()[-1]["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert len(program.session_files()) == 1
    # The same prompt and tools are not stored a second time.
    assert [m["role"] for m in program.messages()].count("system") == 1


def test_json_mode_writes_one_event_a_line(program):
    (program.project / "a.txt").write_text("two\n")
    done = program.run("--mode", "json", "change it")
    events = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "session"
    assert kinds[-1] == "agent_settled"
    assert kinds.count("tool_execution_end") == 3
    ends = [event["message"] for event in events if event["type"] == "message_end"]
    assert ends[-1]["content"] == [{"type": "text", "text": "Changed **two** to `TWO`."}]
    stored = [event["entry"] for event in events if event["type"] == "entry_appended"]
    assert stored == program.entries()


def test_piped_text_and_files_go_with_the_message(program):
    (program.project / "notes.md").write_text("remember the milk\n")
    program.run("-p", "@notes.md", "what is this?", stdin=b"from the pipe\n")
    said = json.dumps(program.requests()[0]["messages"][-1])
    assert "remember the milk" in said and "from the pipe" in said and "what is this?" in said


def test_no_session_writes_no_file(program):
    assert program.run("-p", "--no-session", "hi").returncode == 0
    assert program.session_files() == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-p", "cut off please"), 1, "cut at the output limit"),
        (("-p", "refuse this"), 1, "key"),
        (("-p", "--model", "chat/nothing-like-it", "hi"), 2, "no model called"),
        (("-p", "--tools", "reed", "hi"), 2, "Did you mean read?"),
        (("-p", "@missing.txt", "hi"), 2, "missing.txt"),
        (("-p",), 2, "nothing to send"),
        (("-p", "--continue", "hi"), 2, "No session belongs to"),
        (("-p", "--session", "feedbeef", "hi"), 2, "session"),
        (("--no-such-option",), 2, "--no-such-option"),
        (("--continue", "--no-session", "-p", "hi"), 2, "exclude each other"),
        (("-p", "--thinking", "loud", "hi"), 2, "loud"),
    ],
)
def test_what_goes_wrong_is_said_and_has_its_exit_code(program, arguments, code, words):
    done = program.run(*arguments)
    assert done.returncode == code, done
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "code"), [("{ not json", 1), ('{"providers": {"x": {"models": 5}}}', 2)]
)
def test_a_wrong_models_file_is_an_error_with_its_name(program, text, code):
    (program.root / "models.json").write_text(text)
    done = program.run("-p", "hi")
    assert done.returncode == code, done
    assert "models.json" in done.stderr.decode()
    assert done.stdout == b""  # the demo does not stand in for a mistake
    assert b"Traceback" not in done.stderr


def test_one_wrong_provider_does_not_stop_the_others(program):
    models = json.loads((program.root / "models.json").read_text())
    models["providers"]["broken"] = {"baseUrl": "not a url", "models": [None]}
    (program.root / "models.json").write_text(json.dumps(models))
    done = program.run("-p", "--model", "chat/m", "hi")
    assert (done.returncode, done.stdout) == (0, b"Hello from the server.\n")
    assert "broken" in done.stderr.decode()


def test_an_empty_file_given_by_name_is_refused_and_left_alone(program):
    (program.project / "empty.jsonl").write_bytes(b"")
    done = program.run("-p", "--session", "empty.jsonl", "hi")
    assert done.returncode == 1, done
    assert "empty" in done.stderr.decode()
    assert (program.project / "empty.jsonl").read_bytes() == b""


def test_wrong_settings_are_told_and_the_rest_works(program):
    (program.root / "settings.json").write_text('{"steeringMode": 5, "defaultProvider": "chat"}')
    done = program.run("-p", "hi")
    assert done.returncode == 0
    assert "steeringMode" in done.stderr.decode()
    assert done.stdout == b"Hello from the server.\n"


def test_a_terminal_is_not_needed_for_version_and_help(program):
    assert program.run("--version").stdout.startswith(b"pi-tui ")
    assert b"--continue" in program.run("--help").stdout


def test_list_models_lists_what_can_be_used(program):
    done = program.run("--list-models", "chat")
    assert done.returncode == 0
    assert "chat/m" in done.stdout.decode()


def test_without_any_model_the_demo_answers_and_says_so(program):
    (program.root / "models.json").unlink()
    (program.project / "README.md").write_text("# A project\n")
    done = program.run("-p", "hi")
    assert done.returncode == 0, done
    assert "scripted" in done.stderr.decode()
    assert done.stdout
    assert any(m["role"] == "toolResult" for m in program.messages())


def test_the_key_is_nowhere_on_disk(program):
    models = json.loads((program.root / "models.json").read_text())
    models["providers"]["chat"]["apiKey"] = "$TEST_ONLY_KEY"
    (program.root / "models.json").write_text(json.dumps(models))
    secret = "sk-test-0123456789abcdefghijklmnop"
    environment = program.environment() | {"TEST_ONLY_KEY": secret}
    program.environment = lambda: environment
    for prompt in ("hi", "refuse this"):
        done = program.run("-p", "--model", "chat/m", prompt)
        assert secret.encode() not in done.stdout + done.stderr
    for folder, _, names in os.walk(program.root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                assert secret.encode() not in file.read(), name
