import pytest
from rich.cells import cell_len

from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
    CustomBlock,
    NoticeBlock,
    ShellBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)

BRACKETS = [
    "[00] foo bar",
    "[/]",
    "[/",
    "[bold",
    "for (k of m[/* all */]) {}  ]  }",
    "[phase] rows = {n}",
    "[data: /items?ref=77f0c1-20-]",
    "interval [a, b) and an open one [c + ",
    "[@click=app.quit]press[/]",
    "[link=file:///etc/passwd]x[/link]",
    r"$100 {value} \[escaped]",
]

PAYLOADS = [
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;x\x07",
    "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\",
    "\x1b[2J",
    "\x1b[10A",
    "\x1b[6n",
    "\x1b[c",
    "\x1b]11;?\x07",
    "\x1bPq#0\x1b\\",
    "\x1b_Gx\x1b\\",
    "\x1b^x\x1b\\",
    "\x1bc",
    "\x9b2J",
    "\x9d52;c;x\x9c",
    "\x90x\x9c",
    "\x1b]never ends",
    "a\rb",
    "a\bb",
    "a\x0bb",
    "\u202eabc",
    "\u2066abc",
    "\x7f",
    "\ud800",
]


def blocks_with(text: str) -> list[Block]:
    diff = f"-  1 {text}\n+  2 {text}"
    return [
        UserBlock("user", text),
        AssistantBlock("assistant", text),
        AssistantBlock("code", f"```{text}\n{text}\n```"),
        AssistantBlock("table", f"| a | b |\n|---|---|\n| {text} | `{text}` |"),
        AssistantBlock("link", f"- [t](<http://x/{text}>) **{text}**\n# {text}"),
        ThinkingBlock("thinking", text),
        ToolBlock("bash", "1", "bash", {"command": text}, "ok", f"{text}\n{text}"),
        ToolBlock("read", "2", "read", {"path": text}, "error", text),
        ToolBlock("edit", "3", "edit", {"path": text}, "ok", details={"diff": diff}),
        ToolBlock("write", "4", "write", {"path": f"{text}.py", "content": text}, "ok"),
        ToolBlock("other", "5", text, {text: text}, "running", text),
        ToolBlock("partial", "6", "write", {}, partial_arguments='{"path": "' + text),
        ShellBlock("shell", text, text, 1, truncated=True, full_output_path=text),
        SummaryBlock("summary", "compaction", text, 1, 2),
        CustomBlock("custom", text, text),
        NoticeBlock("info", "info", text),
        NoticeBlock("error", "error", text),
    ]


@pytest.mark.parametrize("expanded", [False, True])
async def test_no_payload_reaches_the_terminal(open_transcript, foreign_controls, expanded) -> None:
    async with open_transcript([], width=100, height=200) as desk:
        if expanded:
            desk.transcript.toggle_tools()
        for payload in PAYLOADS:
            desk.transcript.set_blocks(blocks_with(f"x{payload}y"))
            output = desk.terminal_output()
            assert foreign_controls(output) == [], payload
            assert {strip.cell_length for strip in desk.strips()} == {100}


async def test_a_payload_in_pieces_does_not_reach_the_terminal(
    open_transcript, foreign_controls
) -> None:
    async with open_transcript(
        [AssistantBlock("a", "", streaming=True), ThinkingBlock("t", "", streaming=True)]
    ) as desk:
        for char in "".join(PAYLOADS) + "\nend":
            desk.transcript.append_text("a", char)
            desk.transcript.append_text("t", char)
            assert foreign_controls(desk.terminal_output()) == []
        assert "end" in desk.screen()


async def test_a_command_hides_nothing(open_transcript) -> None:
    command = "echo \x1b]; rm -rf x ;\x07 ok\rrm -rf y"
    block = ToolBlock("b", "1", "bash", {"command": command})
    async with open_transcript([block]) as desk:
        assert "$ echo ␛]; rm -rf x ;␇ ok␍rm -rf y" in desk.screen()


@pytest.mark.parametrize(
    "kind",
    [
        "user", "assistant", "code", "thinking", "bash", "read", "edit", "write", "other",
        "partial", "shell", "summary", "custom", "info", "error",
    ],
)  # fmt: skip
async def test_brackets_are_shown_as_typed(open_transcript, kind: str) -> None:
    async with open_transcript([], width=100, height=60) as desk:
        desk.transcript.toggle_tools()
        for text in BRACKETS:
            block = next(b for b in blocks_with(text) if b.key == kind)
            desk.transcript.set_blocks([block])
            shown = desk.screen()
            if kind == "other":  # arguments are shown as JSON
                assert text.replace("\\", "\\\\").strip() in shown or text.strip() in shown
            elif kind == "partial":
                continue
            else:
                assert text.strip() in shown
            metas = [s.style.meta for strip in desk.strips() for s in strip if s.style]
            assert not any("@click" in meta for meta in metas)
            links = [s.style.link for strip in desk.strips() for s in strip if s.style]
            assert not any(links)


async def test_brackets_streamed_one_character_at_a_time(open_transcript) -> None:
    text = "\n\n".join(BRACKETS)
    async with open_transcript([AssistantBlock("a", "", streaming=True)], height=40) as desk:
        for char in text:
            desk.transcript.append_text("a", char)
            desk.transcript.flush()
        shown = desk.screen()
        assert [line for line in BRACKETS if line.strip() not in shown] == []


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("http://example.com/a", True),
        ("https://example.com/a?b=c#d", True),
        ("mailto:a@example.com", True),
        ("file:///etc/passwd", False),
        ("ftp://example.com", False),
        ("ssh://host", False),
        ("relative/path.md", False),
    ],
)
async def test_only_some_addresses_become_hyperlinks(open_transcript, url, linked) -> None:
    async with open_transcript([AssistantBlock("a", f"[text]({url})")]) as desk:
        links = {s.style.link for strip in desk.strips() for s in strip if s.style and s.style.link}
        assert links == ({url} if linked else set())
        assert url in desk.screen()


async def test_wide_and_joined_characters_keep_the_columns(open_transcript) -> None:
    texts = [
        "日本語のテキスト" * 20,
        "👩‍👩‍👧‍👦❤️🇩🇪👍🏽" * 20,
        "e\u0301a\u0308" * 100,
        "שלום עולם " * 20,
        "مرحبا بالعالم " * 20,
        "x" * 100_000,
        "日" * 50_000,
        "tab\tand\ttab",
        "\u200d\ufe0f\u200d\u0301",
    ]
    for width in (37, 80):
        async with open_transcript([], width=width, height=50) as desk:
            desk.transcript.toggle_tools()
            for text in texts:
                desk.transcript.set_blocks(blocks_with(text)[:12])
                desk.transcript.scroll_top()
                for strip in desk.strips():
                    assert strip.cell_length == width
                    assert sum(cell_len(segment.text) for segment in strip) == width
