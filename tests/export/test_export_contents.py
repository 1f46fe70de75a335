"""What the exports hold, whom they are for, and what is hidden in them."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from pi_tui.core.errors import StorageError, TargetExistsError, UsageError
from pi_tui.export.exporter import FileExporter, format_of
from pi_tui.export.markdown import closed, fenced
from pi_tui.export.masking import Masker


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(message: Any, call_id: str, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return message("toolResult", content, toolCallId=call_id, toolName="read", **more)


@pytest.fixture
def story(message: Any) -> list[dict[str, Any]]:
    """Two branches after the first answer; the second is current."""
    usage = {"input": 1000, "output": 50, "cacheRead": 200, "cost": {"total": 0.25}}
    return [
        {"type": "session_info", "name": "Garden plan"},
        message("user", "first question"),
        message(
            "assistant",
            [{"type": "text", "text": "I **look**"}, call("k1", "read", path="roses.txt")],
            usage=usage,
            stopReason="toolUse",
        ),
        result(message, "k1", "red roses", details={"diff": "+1 new\n-2 old"}, durationMs=1500),
        message("user", "left road", entry={"id": "aaaa000a"}),
        message("assistant", [{"type": "text", "text": "left answer"}]),
        message("user", "right road", entry={"id": "aaaa000b", "parentId": "00000004"}),
        {"type": "label", "targetId": "aaaa000b", "label": "here"},
        {
            "type": "compaction",
            "summary": "They spoke of *roses*.",
            "firstKeptEntryId": "aaaa000b",
            "tokensBefore": 34034,
        },
        message("bashExecution", None, command="ls", output="a b", exitCode=0),
        message(
            "bashExecution", None, command="pass", output="pw", exitCode=0, excludeFromContext=True
        ),
    ]


# ---------------------------------------------------------------- the page


def test_the_page_tells_the_whole_session(rig: Any, story: list[dict[str, Any]]) -> None:
    page = rig.page(*story)
    for text in ("first question", "look", "red roses", "left answer", "right road", "roses.txt"):
        assert text in page.text
    for text in ("Garden plan", "1,200 tokens in", "$0.2500", "34,034 tokens", "1.5s"):
        assert text in page.text
    assert ("strong", {}) in page.elements
    assert "Branch 2" in page.text
    assert rig.report.commands_left_out == 1
    assert "pw" not in page.text.split()
    assert "1 !! command was left out" in page.text


def test_the_outline_shows_all_branches_and_marks_the_path(
    rig: Any, story: list[dict[str, Any]]
) -> None:
    html = rig.export(*story)
    nav = html[html.index("<nav") : html.index("</nav>")]
    rows = nav.split("<li")[1:]
    marked = [row for row in rows if " on" in row.split(">")[0]]
    assert len(rows) == 7
    assert len(marked) == 5
    assert "left road" not in "".join(marked)
    assert "leaf" in rows[-3] or any("leaf" in row for row in marked)
    assert any("here" in row for row in marked)


def test_every_row_leads_to_a_place(rig: Any, story: list[dict[str, Any]]) -> None:
    page = rig.page(*story)
    places = page.attributes("id")
    assert len(places) == len(set(places))
    targets = [href[1:] for href in page.attributes("href") if href.startswith("#")]
    assert targets
    assert set(targets) <= set(places)


def test_calls_can_be_folded(rig: Any, story: list[dict[str, Any]]) -> None:
    page = rig.page(*story)
    assert ("details", {"class": "tool ok"}) in page.elements
    assert ("span", {"class": "add"}) in page.elements


def test_an_odd_tree_is_exported_whole(rig: Any, message: Any) -> None:
    page = rig.page(
        message("user", "one", entry={"id": "aaaaaaaa", "parentId": "bbbbbbbb"}),
        message("user", "two", entry={"id": "bbbbbbbb", "parentId": "aaaaaaaa"}),
        message("user", "three", entry={"parentId": "missing0"}),
        message("user", "four", entry={"parentId": None}),
    )
    for word in ("one", "two", "three", "four"):
        assert page.text.count(word) >= 2, word


def test_a_deep_chain_is_exported(rig: Any, message: Any) -> None:
    entries = [message("user", f"word{n}") for n in range(3000)]
    assert "word2999" in rig.export(*entries)


# ---------------------------------------------------------------- Markdown


def test_markdown_holds_the_current_branch(rig: Any, story: list[dict[str, Any]]) -> None:
    text = rig.export(*story, name="out.md")
    for part in ("# Garden plan", "first question", "I **look**", "red roses", "right road", "ls"):
        assert part in text
    assert "left road" not in text
    assert "2 entries of the session are not on this branch" in text


@pytest.mark.parametrize("name", ["out.md", "out.html"])
def test_both_formats_say_what_is_missing(
    rig: Any, story: list[dict[str, Any]], message: Any, name: str
) -> None:
    prompts = [message("system", "", sections={"cwd": "/x"}) for _ in range(2)]
    secret = message("user", f"{KEYS[0]} and {KEYS[1]}")
    text = rig.export(*prompts, *story[:3], *story[-2:], secret, name=name).replace("\\", "")
    for said in (
        "2 system prompts were left out.",
        "1 !! command was left out.",
        "2 keys were masked.",
    ):
        assert said in text
    assert (rig.report.masked_keys, rig.report.commands_left_out) == (2, 1)
    whole = rig.export(message("user", "hello"), name=f"whole-{name}")
    assert "left out" not in whole and "masked" not in whole


@pytest.mark.parametrize("text", ["```\n# not mine", "````\nx\n```", "``````", "~~~\n```", ""])
def test_no_text_ends_its_fence(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(fenced(text) + "\n\n# mine")
    assert [t.type for t in tokens][:2] == ["fence", "heading_open"]
    assert tokens[0].content.rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize(
    "text",
    [
        "```py\nprint(1)",
        "```\nx\n```",
        "~~~~\n~~~\nstill",
        "text ``` inline",
        "```a`b\nx",
        "   ```\nx",
        "```\n<b>kept</b>\n```",
        "`<b>`",
        "a `b ``c` d`` <i>x</i>",
    ],
)
def test_what_a_model_wrote_ends_where_it_ends(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(closed(text) + "\n\n# mine")
    assert tokens[-3].type == "heading_open"
    assert not any(t.type == "html_block" for t in tokens)
    assert not any(c.type == "html_inline" for t in tokens for c in t.children or ())


def test_code_keeps_its_tags() -> None:
    assert closed("`<b>` and <b>") == "`<b>` and &lt;b>"
    assert closed("```\n<b>\n```") == "```\n<b>\n```"


# ---------------------------------------------------------------- JSONL


def test_jsonl_is_the_file_itself(tmp_path: Path) -> None:
    from pi_tui.core.session_library import snapshot_of_opened
    from pi_tui.storage.jsonl import open_session

    source = tmp_path / "s.jsonl"
    data = (
        b'{"type":"session","version":3,"id":"s1","timestamp":"t","cwd":"/x","odd":[1]}\n'
        b'{"type":"new thing","id":"a0000001","parentId":null,"timestamp":"t","x":1.50}\n'
        b"garbage\n"
        b'{"type":"message","id":"a0000002","parentId":"a0000001","timestamp":"t","message":'
        b'{"role":"user","content":"sk-aaaaaaaaaaaaaaaaaaaaaaaa","timestamp":1},"more":{}}\n'
    )
    source.write_bytes(data)
    opened = open_session(source)
    target = tmp_path / "out.jsonl"
    report = FileExporter().export(snapshot_of_opened(opened), str(target))
    opened.store.close()
    assert target.read_bytes() == data
    assert report.format == "jsonl"


def test_jsonl_of_a_session_in_memory(rig: Any, message: Any) -> None:
    lines = rig.export(message("user", "hello"), name="out.jsonl").splitlines()
    assert len(lines) == 2
    assert '"hello"' in lines[1]


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize("name", ["out.html", "out.md", "out.jsonl"])
def test_the_file_is_for_its_owner_alone(rig: Any, message: Any, name: str) -> None:
    before = os.umask(0)
    try:
        rig.export(message("user", "hello"), name=name)
    finally:
        os.umask(before)
    path = rig.directory / name
    assert path.stat().st_mode & 0o777 == 0o600
    assert rig.report.size_bytes == path.stat().st_size
    assert [p.name for p in rig.directory.iterdir()] == [name]


def test_nothing_is_written_over_unless_told(rig: Any, message: Any) -> None:
    path = rig.directory / "out.html"
    path.write_text("mine")
    path.chmod(0o644)
    with pytest.raises(TargetExistsError, match="exists"):
        rig.export(message("user", "hello"))
    assert path.read_text() == "mine"
    rig.export(message("user", "hello"), replace=True)
    assert "hello" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_nowhere_is_not_followed(rig: Any, message: Any) -> None:
    (rig.directory / "out.html").symlink_to(rig.directory / "elsewhere")
    with pytest.raises(TargetExistsError):
        rig.export(message("user", "hello"))


def test_a_folder_that_is_not_there(rig: Any, message: Any) -> None:
    with pytest.raises(StorageError, match="no such file"):
        rig.export(message("user", "hello"), name="missing/out.html")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.html.zip", ".html"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="format"):
        format_of(name)


# ---------------------------------------------------------------- keys

KEYS = [
    "sk-ant-api03-" + "Ab1_" * 12,
    "ghp_" + "a1B2" * 10,
    "github_pat_" + "A1b2" * 12,
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "B" * 35,
    "xoxb-123456789012-abcdefABCDEF",
    "hf_" + "aB3" * 12,
    "glpat-" + "x1Y2" * 5,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmno",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key[:8])
def test_keys_are_masked_and_counted(rig: Any, message: Any, key: str) -> None:
    html = rig.export(message("bashExecution", None, command="env", output=f"x\n{key}\n"))
    assert key.splitlines()[-1] not in html
    assert rig.report.masked_keys == 1
    assert "1 key was masked" in html
    text = rig.export(message("user", f"use {key} now"), name="out.md")
    assert key not in text
    assert rig.report.masked_keys == 1


def test_keys_stay_when_told(rig: Any, message: Any) -> None:
    assert KEYS[0] in rig.export(message("user", f"`{KEYS[0]}`"), masked=False)
    assert rig.report.masked_keys == 0


def test_keys_are_hidden_in_names_and_outlines_too(rig: Any, message: Any) -> None:
    html = rig.export(
        {"type": "session_info", "name": f"about {KEYS[1]}"},
        message("user", f"{KEYS[1]} is the key"),
        message("assistant", [call("k", "bash", command=f"echo {KEYS[1]}")]),
        {"type": "label", "targetId": "00000002", "label": KEYS[1]},
    )
    assert KEYS[1] not in html


NAMED = "abcd1234efgh5678ijkl"


@pytest.mark.parametrize("name", ["out.html", "out.md"])
@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ({"command": f"cat <<E\n{KEYS[0]}\nE"}, KEYS[0]),
        ({"command": f"printf a\t{KEYS[1]}"}, KEYS[1]),
        ({"content": f'{{"api_key": "{NAMED}"}}'}, NAMED),
        ({"content": f'password: "{NAMED}"'}, NAMED),
        ({"edits": [{"newText": f"x\n{KEYS[5]}"}]}, KEYS[5]),
        ({"api_key": NAMED}, NAMED),
        ({"tokens": ["first", NAMED]}, NAMED),
        ({f"x\n{KEYS[3]}": 1}, KEYS[3]),
        ({"env": {"GITHUB_TOKEN": NAMED}}, NAMED),
        ({"password": 12345678901234567}, "12345678901234567"),
        ({"path": "a", "content": 'x\nthe é "secret" value\n'}, 'the é \\"secret\\"'),
    ],
    ids=lambda value: next(iter(value))[:8] if isinstance(value, dict) else "",
)
def test_keys_in_the_arguments_of_calls_are_masked(
    rig: Any, message: Any, arguments: dict[str, Any], kept: str, name: str
) -> None:
    known = ('the é "secret" value',)
    text = rig.export(
        message("assistant", [call("k", "tool", **arguments)]), name=name, secrets=known
    )
    assert kept not in text and html.escape(kept) not in text
    assert kept[5:] not in text
    assert rig.report.masked_keys == 1


def test_arguments_stay_readable_json(rig: Any, message: Any) -> None:
    arguments = {KEYS[1]: 1, KEYS[1][:-1] + "Z": [KEYS[0], {"a": None}], "n": 1.5}
    text = rig.export(message("assistant", [call("k", "tool", **arguments)]), name="out.md")
    shown = json.loads(text.split("```json\n")[1].split("```")[0])
    first, second, _ = shown
    assert first.startswith("ghp_") and second.startswith("ghp_") and first != second
    assert shown[second][1] == {"a": None} and shown["n"] == 1.5


def test_a_glance_never_shows_a_key_that_it_cut(rig: Any, message: Any) -> None:
    key = KEYS[4]
    for blanks in range(1960, 2000):
        html_text = rig.export(message("user", "a" + " " * blanks + key), replace=True)
        nav = html_text[html_text.index("<nav") : html_text.index("</nav>")]
        assert "AIzaB" not in nav, blanks


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("OPENAI_API_KEY=abcd1234efgh5678ijkl", 1),
        ('"api_key": "abcd1234efgh5678ijkl"', 1),
        ("Authorization: Bearer abcd1234efgh5678ijkl", 1),
        ("postgres://user:hunter22@db/x", 1),
        ("tokens: 1234", 0),
        ("token = next_token_of_the_stream", 0),
        ("the secret: a walk in the garden", 0),
        ("sk-learn and ask-me-anything-about-it", 0),
        ("git show 1234567890abcdef1234567890abcdef12345678", 0),
        ("https://example.org:8080/a@b", 0),
    ],
)
def test_what_counts_as_a_key(text: str, masked: int) -> None:
    masker = Masker()
    changed = masker.mask(text)
    assert masker.count == masked, changed
    assert (changed == text) == (masked == 0)


def test_named_values_are_masked_whatever_they_look_like() -> None:
    masker = Masker(("plain words", "short"))
    assert masker.mask("these plain words are short") == "these …[masked] are short"
    assert masker.count == 1
