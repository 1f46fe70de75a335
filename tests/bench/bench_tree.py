"""What the tree navigator costs, as ratios taken in one run: `python tests/bench/bench_tree.py`.

Each question is asked of 10,000 and of 100,000 entries, as a chain and as a bush. What depends on
the rows in sight must not grow with the tree, what goes through the whole tree may grow with it.
Milliseconds stand beside. Exits with 1 when a ratio is far from what the design promises.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tui" / "tree"))
import conftest as hosts

from pi_tui.core.entries import Entry, MessageEntry, iso_timestamp
from pi_tui.core.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.tui.garbage import begin_collecting, take_back

START_MS = 1_750_000_000_000
PLAIN_TEXT = "some words about a parser and a lexer, as people write them " * 6


def message(n: int) -> Message:
    if n % 4 == 0:
        return UserMessage(f"question {n} {PLAIN_TEXT}", 0)
    if n % 4 == 1:
        call = ToolCall(f"c{n}", "bash", {"command": f"make target{n}"})
        return AssistantMessage((call,), "a", "p", "m", Usage(), "toolUse", 0)
    if n % 4 == 2:
        return ToolResultMessage(f"c{n - 1}", "bash", (TextContent(f"built {n}"),), False, 0)
    text = (TextContent(f"answer {n} {PLAIN_TEXT}"),)
    return AssistantMessage(text, "a", "p", "m", Usage(total_tokens=n), "stop", 0)


def conversation(count: int, *, bushy: bool) -> list[Entry]:
    """Turns of four entries; in a bush a question may follow any of the last hundred turns."""
    chance = random.Random(count)
    made: list[Entry] = []
    for n in range(count):
        parent = n - 1
        if bushy and n % 4 == 0 and n > 8:
            parent = chance.randrange(max(1, n // 4 - 100), n // 4) * 4 + 3
        made.append(
            MessageEntry(
                id=f"{n:08x}",
                parent_id=made[parent].id if n else None,
                timestamp=iso_timestamp(START_MS + 1000 * n),
                message=message(n),
            )
        )
    return made


MOST_GROWTH = {
    "open": 25.0,
    "open again": 15.0,
    "arrow while answers are read": 4.0,
    "arrow": 3.0,
    "page": 3.0,
    "filter": 15.0,
    "key in the search": 3.0,
    "arrow while the search goes on": 4.0,
}
"""How many times longer each may take in a tree of ten times as many entries."""

Figures = dict[str, float]


async def keys_ms(desk: hosts.Desk, keys: list[tuple[str, str | None]]) -> float:
    """The median time from a key to the screen that shows it."""
    times: list[float] = []
    for name, character in keys:
        start = time.perf_counter()
        desk.app.panels[0].key(name, character)
        desk.app.panels[0].refresh()
        desk.app.screen._compositor.render_strips()
        times.append(1000 * (time.perf_counter() - start))
        await desk.pilot.pause()
    return sorted(times)[len(times) // 2]


async def measure(count: int, *, bushy: bool) -> Figures:
    entries = conversation(count, bushy=bushy)
    app = hosts.TreeApp(hosts.TreeSessionDouble(entries), "dark", {})
    figures: Figures = {}
    async with app.run_test(size=(120, 40)) as pilot:
        gc.collect()
        begin_collecting()  # as the program does after its first screen
        desk = hosts.Desk(app, pilot)

        async def opened() -> float:
            start = time.perf_counter()
            app.navigator.open()
            while "›" not in "\n".join(desk.lines()):
                await asyncio.sleep(0)
            return 1000 * (time.perf_counter() - start)

        async def closed() -> None:
            app.panels[0].finish(None)
            await asyncio.gather(*app.tasks)
            await pilot.pause()

        figures["open"] = await opened()
        panel = app.panels[0]
        figures["arrow while answers are read"] = await keys_ms(desk, [("up", None)] * 20)
        while desk.view.unread_count:
            await asyncio.sleep(0.005)
        panel.delays.do_now("layout")
        figures["arrow"] = await keys_ms(desk, [("up", None)] * 30)
        figures["page"] = await keys_ms(desk, [("pageup", None)] * 10)
        figures["filter"] = await keys_ms(desk, [("ctrl+t", None)] * 6)
        panel.key("/", "/")
        figures["key in the search"] = await keys_ms(desk, [(char, char) for char in "target12"])
        start = time.perf_counter()
        panel.search.flush()
        while not desk.view.hit_count and panel.search.running:
            await asyncio.sleep(0)
        figures["first hits"] = 1000 * (time.perf_counter() - start)
        figures["arrow while the search goes on"] = await keys_ms(desk, [("up", None)] * 20)
        await panel.search.wait()
        figures["all hits"] = 1000 * (time.perf_counter() - start)
        await closed()
        figures["open again"] = await opened()
        await closed()
        take_back()
    return figures


async def main() -> int:
    failures = 0
    for bushy in (False, True):
        print("a bush" if bushy else "one chain")
        few = await measure(10_000, bushy=bushy)
        many = await measure(100_000, bushy=bushy)
        for what, ms in few.items():
            growth, most = many[what] / ms, MOST_GROWTH.get(what)
            verdict = ""
            if most is not None and growth > most:
                failures += 1
                verdict = "   <-- too much"
            limit = "" if most is None else f" (at most {most:g})"
            print(
                f"  {what:32} 10,000: {ms:7.1f} ms   100,000: {many[what]:7.1f} ms"
                f"   × {growth:.1f}{limit}{verdict}"
            )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
