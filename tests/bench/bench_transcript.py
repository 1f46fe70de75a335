"""What the transcript costs, as ratios taken in one run: `python tests/bench/bench_transcript.py`.

Absolute numbers differ between machines; the ratios should not. Prints one line for each question
and exits with 1 when an answer is far from what the design promises.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from textual.app import App, ComposeResult

from pi_tui.core.transcript import AssistantBlock, Block, ShownBlock, ToolBlock, UserBlock
from pi_tui.resources.themes import load_theme
from pi_tui.tui.theme import textual_theme, transcript_styles
from pi_tui.tui.transcript import Transcript
from pi_tui.tui.transcript.markdown import MarkdownRenderer
from pi_tui.tui.transcript.markdown_column import MarkdownColumn, draw_markdown
from pi_tui.tui.transcript.unread import Clue, Unread

PARAGRAPH = (
    "Some **bold** words, `code`, a [link](https://example.com) and enough of plain prose around "
    "them that the paragraph takes a few lines on a screen of the usual width.\n\n"
)
SECTION = (
    "## A heading\n\n" + PARAGRAPH * 2 + "- one\n- two with *emphasis*\n- three\n\n"
    "```python\ndef f(x: int) -> str:\n    return str(x)  # a comment\n```\n\n"
    "| a | b |\n|---|--:|\n| one | 1 |\n| two | 2 |\n\n"
)


class BenchApp(App[None]):
    CSS = "Transcript { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        theme = load_theme("dark")
        self.register_theme(textual_theme(theme))
        self.theme = theme.name
        self.transcript = Transcript(theme)

    def compose(self) -> ComposeResult:
        yield self.transcript


class Stored(Unread):
    """A stretch of 64 blocks that are made when they are read."""

    has_user_messages = has_outputs = True

    def __init__(self, number: int) -> None:
        super().__init__(f"s{number}", 64)

    def holds(self, block_key: str) -> bool:
        return block_key.startswith(f"{self.key}:")

    def read(self) -> list[Block]:
        return [AssistantBlock(f"{self.key}:{n}", PARAGRAPH) for n in range(64)]

    def read_if(self, clue: Clue) -> list[Block] | None:
        return self.read()


def conversation(blocks: int) -> list[Block]:
    made: list[Block] = []
    for n in range(blocks // 3):
        output = "\n".join(f"line {k}" for k in range(50))
        made += [
            UserBlock(f"u{n}", f"question {n}"),
            AssistantBlock(f"a{n}", SECTION),
            ToolBlock(f"t{n}", f"c{n}", "bash", {"command": f"make {n}"}, "ok", output),
        ]
    return made


def cpu_ms(work: Callable[[], object], times: int = 3) -> float:
    """The best of a few runs, in milliseconds of this process."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, 1000 * (time.process_time() - start))
    return best


def stream(pieces: list[str], per_flush: int) -> None:
    column = MarkdownColumn(MarkdownRenderer(transcript_styles(load_theme("dark"))), 116)
    for start in range(0, len(pieces), per_flush):
        for piece in pieces[start : start + per_flush]:
            column.feed(piece)
        column.update()
    column.finish()


async def main() -> int:
    failures = 0

    def report(question: str, ratio: float, most: float, detail: str) -> None:
        nonlocal failures
        failures += ratio > most
        verdict = "" if ratio <= most else "   <-- too much"
        print(f"{question:58} {ratio:8.2f}  (at most {most:g}; {detail}){verdict}")

    app = BenchApp()
    async with app.run_test(size=(120, 40)):
        transcript = app.transcript

        def open_blocks(blocks: list[Block]) -> None:
            transcript.set_blocks(blocks)
            transcript.flush()

        few, many = conversation(300), conversation(12_000)
        open_blocks(few)
        few_ms, many_ms = cpu_ms(lambda: open_blocks(few)), cpu_ms(lambda: open_blocks(many))
        report(
            "opening 12,000 blocks / 300 blocks", many_ms / few_ms, 40,
            f"{many_ms:.1f} ms and {few_ms:.1f} ms",
        )  # fmt: skip

        unread: list[ShownBlock | Unread] = [Stored(n) for n in range(2_000)]

        def open_unread() -> None:
            transcript.set_blocks([*unread, *few])
            transcript.flush()

        unread_ms = cpu_ms(open_unread)
        report(
            "opening 300 blocks below 128,000 unread ones / 300 blocks", unread_ms / few_ms, 5,
            f"{unread_ms:.1f} ms",
        )  # fmt: skip

        def to_top_and_back() -> None:
            transcript.scroll_top()
            transcript.flush()
            transcript.scroll_bottom()
            transcript.flush()

        jump_ms = cpu_ms(to_top_and_back)
        report("to the top of them and back / opening", jump_ms / unread_ms, 4, f"{jump_ms:.1f} ms")
        open_blocks(many)

        def page_up() -> None:
            transcript.page_up()
            transcript.flush()

        page_ms = cpu_ms(page_up, 20)
        report("a page up / opening 12,000", page_ms / many_ms, 1, f"{page_ms:.1f} ms")

        transcript.set_blocks([AssistantBlock("a", SECTION * 60, streaming=True)])
        transcript.flush()

        def grow() -> None:
            transcript.append_text("a", " more")
            transcript.flush()

        grow_ms = cpu_ms(grow, 20)
        draw_ms = cpu_ms(lambda: draw_markdown(SECTION * 60, _renderer(), 116))
        report(
            "one more token of a long answer / drawing it all", grow_ms / draw_ms, 0.1,
            f"{grow_ms:.2f} ms and {draw_ms:.1f} ms",
        )  # fmt: skip

        output = "\n".join(f"line {n} of an output" for n in range(20_000))
        block = ToolBlock("t", "c", "bash", {"command": "x"}, "ok", output)
        transcript.set_blocks([block])
        transcript.flush()

        def expand() -> None:
            transcript.toggle_tools()
            transcript.flush()

        expand_ms = cpu_ms(expand, 4)
        sanitise_ms = cpu_ms(lambda: [line.upper() for line in output.split("\n")])
        report(
            "expanding 20,000 lines / touching each line once", expand_ms / sanitise_ms, 60,
            f"{expand_ms:.1f} ms",
        )  # fmt: skip

    text = SECTION * 130
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)][:20_000]
    whole_ms = cpu_ms(lambda: draw_markdown("".join(pieces), _renderer(), 116))
    slow_ms, fast_ms = cpu_ms(lambda: stream(pieces, 7), 1), cpu_ms(lambda: stream(pieces, 100), 1)
    report(
        f"{len(pieces)} tokens streamed, 7 a flush / drawn at once", slow_ms / whole_ms, 40,
        f"{slow_ms:.0f} ms and {whole_ms:.0f} ms",
    )  # fmt: skip
    report("the same, 100 a flush", fast_ms / whole_ms, 8, f"{fast_ms:.0f} ms")
    return 1 if failures else 0


def _renderer() -> MarkdownRenderer:
    return MarkdownRenderer(transcript_styles(load_theme("dark")))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
