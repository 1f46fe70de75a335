"""Foreign text in the page: it is shown, and it can do nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_tui.export.html_text import is_safe_link, markdown_html
from pi_tui.export.page_parts import SCRIPT, STYLE

ATTACKS = [
    "[click](javascript:alert(1))",
    "[c](JaVaScRiPt:alert(1))",
    "[c](&#106;avascript:alert(1))",
    "[c](data:text/html;base64,PHNjcmlwdD4=)",
    "[c](vbscript:x) [d](file:///etc/passwd) [e](//evil.example/x) [f](relative)",
    '![x](x" onerror="alert(1))',
    "![x](https://evil.example/track.png)",
    "<script>alert(1)</script>",
    "<style>body{display:none}</style>",
    '<file name="a.txt">hello</file>',
    "</script><script>alert(2)</script>",
    "</style></title></textarea></pre></details></article><img src=x onerror=alert(1)>",
    "${alert(3)}",
    "<!-- --><!--> --!>",
    "a\u2028b\u2029c",
    "<svg onload=alert(1)>",
    "<javascript:alert(1)>",
    "[a]: javascript:alert(1)\n\n[a]",
    '[t](https://a.example "x\\" onmouseover=\\"alert(1)")',
    '```js" onclick="alert(1)\n</code></pre><script>alert(1)</script>\n```',
    "| a |\n|:-:|\n| <b>x</b> |",
    "\x1b]8;;javascript:alert(1)\x07x\x1b]8;;\x07\x00\x9b31m",
    "\ud800 lone",
]
EVERYTHING = "\n\n".join(ATTACKS)

TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body nav ol ul li a main header h1 h2 h3 h4 h5 h6 p br hr "
        "article section details summary div span b pre code em strong s blockquote table thead "
        "tbody tr th td img script footer",
    )
)
ATTRIBUTES = frozenset(
    re.findall(
        r"\S+",
        "lang charset http-equiv content name aria-label class href rel id open start alt src",
    )
)
MARKS = [*"<>\"'&`[]()!\\#*_|~-:= \n\t\0/", "a", "href", "on", "javascript:", "data:", "&#106;"]
MARKS += ["http://x", "```", "<script>", "</pre>", "\x1b]8;;", "\u202e"]


def entries_with(attack: str, message: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """The attack in every field that can hold text."""
    return [
        {"type": "session_info", "name": attack},
        message("user", attack),
        message("user", [{"type": "text", "text": attack}, _image(attack, "AAAA")]),
        message(
            "assistant",
            [
                {"type": "thinking", "thinking": attack},
                {"type": "text", "text": attack},
                {
                    "type": "toolCall",
                    "id": attack,
                    "name": attack,
                    "arguments": {attack: attack, "path": attack},
                },
            ],
            provider=attack,
            model=attack,
            stopReason="toolUse",
            usage={"input": 1, "output": 2, "cost": {"total": 1}},
        ),
        {
            **message(
                "toolResult",
                [{"type": "text", "text": attack}, _image('image/png" onerror="alert(4)', "AAAA")],
                toolCallId=attack,
                toolName=attack,
                details={"diff": attack},
            ),
        },
        message("toolResult", [{"type": "text", "text": attack}], toolCallId="x", toolName=attack),
        message("bashExecution", None, command=attack, output=attack, exitCode=1),
        message("assistant", [], stopReason="error", errorMessage=attack),
        {"type": "custom_message", "customType": attack, "content": attack, "display": True},
        {"type": "compaction", "summary": attack, "firstKeptEntryId": attack, "tokensBefore": 5},
        {"type": "branch_summary", "summary": attack, "fromId": attack, "id": f'"{attack}'},
        {"type": "label", "targetId": "00000002", "label": attack},
        {"type": attack, "data": attack},
    ]


def _image(mime_type: str, data: str) -> dict[str, str]:
    return {"type": "image", "mimeType": mime_type, "data": data}


def assert_harmless(page: Any) -> None:
    assert {tag for tag, _ in page.elements} <= TAGS
    names = {name for _, attrs in page.elements for name in attrs}
    assert names <= ATTRIBUTES, names - ATTRIBUTES
    for href in page.attributes("href"):
        assert href.startswith(("https://", "http://", "mailto:", "#n")), href
    for src in page.attributes("src"):
        assert src.startswith(("data:image/png;base64,", "data:image/jpeg;base64,")), src
    assert page.scripts == [SCRIPT]
    assert page.styles == [STYLE]
    assert page.comments == []
    assert page.badly_nested == []
    assert page.open == []


@pytest.mark.parametrize("attack", [*ATTACKS, EVERYTHING], ids=range(len(ATTACKS) + 1))
def test_nothing_runs_wherever_it_stands(rig: Any, message: Any, attack: str) -> None:
    assert_harmless(rig.page(*entries_with(attack, message)))


@pytest.mark.parametrize(
    "attack", [a for a in ATTACKS if not any(c in a for c in "\x1b\ud800\u2028`|\\")]
)
def test_it_can_be_read(rig: Any, message: Any, attack: str) -> None:
    for entry in (
        message("bashExecution", None, command="x", output=attack, exitCode=0),
        message("assistant", [{"type": "thinking", "thinking": attack}]),
    ):
        assert attack in rig.page(entry, replace=True).text


def test_tags_in_prose_can_be_read(rig: Any, message: Any) -> None:
    text = rig.page(message("user", EVERYTHING)).text
    for shown in ('<file name="a.txt">hello</file>', "<script>alert(1)</script>", "${alert(3)}"):
        assert shown in text
    assert "‹U+2028›" in text
    assert "\u2028" not in text
    assert "javascript:alert(1)" in text


def test_the_policy_allows_what_is_ours_and_nothing_else(rig: Any, message: Any) -> None:
    page = rig.page(message("user", "hello"))
    policy = next(
        attrs["content"]
        for tag, attrs in page.elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    for text in (page.scripts[0], page.styles[0]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("http-equiv", "")


def test_an_image_is_within_the_page_or_named(rig: Any, message: Any) -> None:
    good = base64.b64encode(b"picture").decode()
    page = rig.page(
        message("user", [_image("image/png", good), _image("image/svg+xml", good)]),
        message("user", [_image("image/png", 'x" onerror="alert(1)')]),
    )
    assert page.attributes("src") == [f"data:image/png;base64,{good}"]
    assert "image/svg+xml" in page.text


def test_nothing_of_the_machine_is_named(rig: Any, message: Any) -> None:
    html = rig.export(
        message("system", "", sections={"cwd": "/home/alice/secret-project"}),
        message("user", "hello"),
        secrets=("value-of-a-variable",),
    )
    for word in ("alice", "secret-project", "/home/", "value-of-a-variable"):
        assert word not in html
    assert "1 system prompt was left out" in html


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(MARKS), max_size=60).map("".join))
def test_no_markdown_makes_more_than_it_may(read_page: Any, text: str) -> None:
    page = read_page(markdown_html(text))
    assert {tag for tag, _ in page.elements} <= TAGS - {"script", "style", "img", "meta"}
    assert {name for _, attrs in page.elements for name in attrs} <= {
        "href",
        "rel",
        "class",
        "start",
    }
    assert all(is_safe_link(href) for href in page.attributes("href"))
    assert page.badly_nested == []


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://example.org/a?b=c", True),
        ("HTTP://EXAMPLE.ORG", True),
        ("mailto:a@b.example", True),
        ("javascript:alert(1)", False),
        (" javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("https:alert(1)", False),
        ("//example.org", False),
        ("/path", False),
        ("#n1", False),
        ("data:text/html,x", False),
        ("", False),
    ],
)
def test_which_links_are_links(url: str, safe: bool) -> None:
    assert is_safe_link(url) is safe


def test_long_and_crooked_markdown_ends_soon() -> None:
    for text in ("[" * 50_000, "*a " * 30_000, ">" * 20_000, "`" * 30_000, "- " * 20_000):
        assert len(markdown_html(text)) < 3_000_000
