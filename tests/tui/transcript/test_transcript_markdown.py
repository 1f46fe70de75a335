import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pi_tui.resources.themes import load_theme
from pi_tui.tui.theme import transcript_styles
from pi_tui.tui.transcript.markdown import MarkdownRenderer
from pi_tui.tui.transcript.markdown_column import MarkdownColumn, draw_markdown

RENDERER = MarkdownRenderer(transcript_styles(load_theme("dark")))

DOCUMENT = """# Title

Some **bold**, *italic*, ~~gone~~, `code`, [a link](https://example.com/x), <https://a.b>.
A second line of the paragraph with $100 and \\[x\\].

- one
  continued
- two
  - nested
    deeper text

  a paragraph in the item

1. first
2. second

1. third
```python
def f(x: int) -> str:

    return "a"
```
> quote **bold**
> > deeper

| Name | Count | Text |
|:--|--:|:-:|
| a | 1 | a long text that has to be wrapped because there is no room for it |
| `b` | 22 | [x](http://y.z) |

***
Setext
======
~~~
plain
   ```
~~~
   ```js
   indented()

still code
   ```
last & <b>not html</b> &amp; &#x202e;[ref]

[ref]: http://example.com
"""

FRAGMENTS = [
    "- item\n", "* ", "1. one\n", "2) two\n", "   - nested\n", "# H\n", "#", "\n", "\n\n", "```\n",
    "```py\n", "``", "~~~\n", "> q\n", ">", "---\n", "===\n", "| a | b |\n", "|---|---|\n", "**",
    "`", "text ", "    code\n", "\t", "日本", "👩‍👩‍👧", "[a](b)", "[r]: x\n", "\\", "<b>", "&#27;",
    "word\n", "  ", "a | b\n", "\x1b[31m", "\r\n", "- [ ] t\n", "1986. x\n", "~~", "_", "***\n",
]  # fmt: skip


def texts_of(column: MarkdownColumn) -> list[str]:
    return [row.text for row in column.rows()]


def streamed(pieces: list[str], width: int) -> MarkdownColumn:
    column = MarkdownColumn(RENDERER, width)
    for piece in pieces:
        column.feed(piece)
        column.update()
        assert all(sum(cell_len(text) for text, _ in row.spans) <= width for row in column.rows())
    column.finish()
    return column


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25), st.integers(8, 60), st.randoms())
@example(["para\n", "#", "foo\n"], 20, random.Random(0))
@example(["- a\n", "\n", "  - b\n", "\n", "c"], 20, random.Random(0))
@settings(deadline=None, max_examples=50)
def test_a_streamed_text_ends_like_the_whole(
    fragments: list[str], width: int, rng: random.Random
) -> None:
    text = "".join(fragments)
    pieces, at = [], 0
    while at < len(text):
        size = rng.randint(1, 9)
        pieces.append(text[at : at + size])
        at += size
    whole = draw_markdown(text, RENDERER, width)
    assert list(streamed(pieces, width).rows()) == list(whole.rows())


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_document_streamed_by_character(width: int) -> None:
    whole = draw_markdown(DOCUMENT, RENDERER, width)
    assert list(streamed(list(DOCUMENT), width).rows()) == list(whole.rows())


def test_how_a_document_is_drawn() -> None:
    assert texts_of(draw_markdown(DOCUMENT, RENDERER, 60)) == [
        "Title",
        "",
        "Some bold, italic, gone, code, a link",
        "(https://example.com/x), https://a.b.",
        "A second line of the paragraph with $100 and \\[x\\].",
        "",
        "• one",
        "  continued",
        "• two",
        "  ◦ nested",
        "    deeper text",
        "  ",
        "  a paragraph in the item",
        "",
        "1. first",
        "2. second",
        "",
        "3. third",
        "▏ python",
        "▏ def f(x: int) -> str:",
        "▏ ",
        '▏     return "a"',
        "▎ quote bold",
        "▎ ▎ deeper",
        "",
        "┌──────┬───────┬───────────────────────────────────────────┐",
        "│ Name │ Count │                   Text                    │",
        "├──────┼───────┼───────────────────────────────────────────┤",
        "│ a    │     1 │    a long text that has to be wrapped     │",
        "│      │       │      because there is no room for it      │",
        "│ b    │    22 │              x (http://y.z)               │",
        "└──────┴───────┴───────────────────────────────────────────┘",
        "",
        "─" * 60,
        "Setext",
        "▏ plain",
        "▏    ```",
        "▏ js",
        "▏ indented()",
        "▏ ",
        "▏ still code",
        "last & <b>not html</b> & ‹U+202E›[ref]",
        "",
        "[ref]: http://example.com",
    ]


def test_an_open_fence_is_shown_line_by_line_and_keeps_its_rows_when_it_closes() -> None:
    column = MarkdownColumn(RENDERER, 30)
    for piece in ("```py\n", "x = 1\n", "\n", "def f(): pass  # a comment that wr"):
        column.feed(piece)
        column.update()
    before = texts_of(column)
    assert before == [
        "▏ py",
        "▏ x = 1",
        "▏ ",
        "▏ def f(): pass  # a comment t",
        "▏ hat wr",
    ]
    column.feed("\n```\n")
    column.update()
    assert texts_of(column) == before


def test_code_is_coloured_when_its_fence_closes() -> None:
    open_column = streamed_without_end("```py\nreturn 1\n")
    closed = draw_markdown("```py\nreturn 1\n```\n", RENDERER, 40)
    assert len({style for _, style in open_column.row(1).spans[1:]}) == 1
    assert len({style for _, style in closed.row(1).spans[1:]}) > 1


def streamed_without_end(text: str) -> MarkdownColumn:
    column = MarkdownColumn(RENDERER, 40)
    column.feed(text)
    column.update()
    return column


def test_a_very_long_open_paragraph_is_complete_at_each_moment() -> None:
    column = MarkdownColumn(RENDERER, 50)
    words = [f"word{n} " for n in range(2_000)]
    for word in words:
        column.feed(word)
        column.update()
    shown = "".join(row.text for row in column.rows()).replace(" ", "")
    assert shown == "".join(words).replace(" ", "")


def test_a_narrow_table_becomes_records() -> None:
    table = "| First | Second | Third | Fourth |\n|-|-|-|-|\n| a1 | b1 | c1 | d1 |\n| a2 | b2 |"
    rows = texts_of(draw_markdown(table, RENDERER, 20))
    assert rows == [
        "First: a1", "Second: b1", "Third: c1", "Fourth: d1", "",
        "First: a2", "Second: b2", "Third: ", "Fourth: ",
    ]  # fmt: skip


def test_nothing_nested_too_deep_is_lost() -> None:
    text = "> " * 60 + "deep\n\n" + "".join("  " * n + f"- x{n}\n" for n in range(60))
    shown = "\n".join(texts_of(draw_markdown(text, RENDERER, 200)))
    assert "deep" in shown
    assert all(f"x{n}" in shown for n in range(60))
