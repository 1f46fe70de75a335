"""What becomes of the text when it is sent, refused, queued and taken back."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from textual import events

from pi_tui.agent.queues import Draft
from pi_tui.core.events import ActivityChanged, Notice
from pi_tui.core.messages import ImageContent

Make = Callable[..., Any]
CAT, DOG = ImageContent("Y2F0", "image/png"), ImageContent("ZG9n", "image/png")


class Desk:
    """An app over a session that refuses, or holds drafts with images."""

    def __init__(self, bench: Make, double: ModuleType) -> None:
        class Session(double.SessionDouble):  # type: ignore[name-defined, misc]
            refuses = False
            drafts: tuple[Draft, ...] = ()
            images: list[tuple[ImageContent, ...]]

            def submit(self, text: str, delivery: str = "steer", images: Any = ()) -> str:
                if self.refuses:
                    self.emit(Notice("error", "this session is open for reading only"))
                    return "refused"
                self.images.append(tuple(images))
                return str(super().submit(text, delivery))

            def start_shell(self, command: str, *, excluded: bool) -> bool:
                return not self.refuses and bool(super().start_shell(command, excluded=excluded))

            def take_back_drafts(self) -> tuple[Draft, ...]:
                taken, self.drafts = self.drafts, ()
                return taken

        self.session = Session()
        self.session.images = []
        self.bench = bench(self.session)
        self.app = self.bench.app

    @property
    def text(self) -> str:
        return str(self.app.editor.buffer.expanded())


async def paste(pilot: Any, text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


async def test_a_refused_message_stays_in_the_editor(bench: Make, double: ModuleType) -> None:
    desk = Desk(bench, double)
    desk.session.refuses = True
    async with desk.app.run_test(size=(80, 24)) as pilot:
        for key in ("enter", "alt+enter"):
            desk.app.editor.set_text("precious text")
            await pilot.press(key)
            assert desk.text == "precious text" and desk.session.submitted == []
        await pilot.pause(0.05)
        assert "open for reading only" in desk.bench.screen
        desk.app.editor.set_text("!rm x")
        await pilot.press("enter")
        assert desk.text == "!rm x" and desk.session.shells == []
        desk.session.refuses = False
        await pilot.press("enter")
        assert desk.text == "" and desk.session.shells == [("rm x", False)]


async def test_a_refused_long_paste_stays_whole(bench: Make, double: ModuleType) -> None:
    desk = Desk(bench, double)
    long = "\n".join(f"line {n}" for n in range(40))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.session.refuses = True
        await paste(pilot, long)
        await pilot.press("enter")
        assert desk.text == long
        desk.session.refuses = False
        await pilot.press("enter")
        assert desk.session.submitted == [(long, "steer")] and desk.text == ""
        await pilot.press("up")
        assert desk.text == long


async def test_images_come_back_with_their_messages(bench: Make, double: ModuleType) -> None:
    desk = Desk(bench, double)
    desk.session.drafts = (Draft("look", (CAT,)), Draft("and this", (DOG,)))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.app.editor.set_text("draft")
        await pilot.press("alt+up")
        await pilot.pause(0.05)
        assert desk.text == "look\n\nand this\n\ndraft"
        assert "draft[image #1][image #2]" in desk.bench.screen
        assert "2 queued messages are back in the editor, with 2 images" in desk.bench.screen
        await pilot.press("enter")
        assert desk.session.submitted == [("look\n\nand this\n\ndraft", "steer")]
        assert desk.session.images == [(CAT, DOG)]
        await pilot.press("x", "enter")
        assert desk.session.images[-1] == ()


async def test_an_image_is_deleted_undone_and_found_in_the_history(
    bench: Make, double: ModuleType
) -> None:
    desk = Desk(bench, double)
    desk.session.drafts = (Draft("two", (CAT, DOG)),)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("alt+up", "backspace")
        await pilot.pause(0.05)
        assert "two[image #1]" in desk.bench.screen
        await pilot.press("ctrl+-", "backspace", "enter")
        assert desk.session.images == [(CAT,)]
        await pilot.press("up", "enter")
        assert desk.session.images == [(CAT,), (CAT,)]


async def test_images_survive_another_editor(bench: Make, double: ModuleType) -> None:
    desk = Desk(bench, double)
    desk.session.drafts = (Draft("two", (CAT,)),)
    async with desk.app.run_test() as pilot:
        await pilot.press("alt+up")
        desk.app.editor.buffer.set_edited_text("three")
        await pilot.press("enter")
        assert desk.session.submitted == [("three", "steer")] and desk.session.images == [(CAT,)]


async def test_a_message_of_the_tree_is_edited_with_its_images(
    bench: Make, double: ModuleType
) -> None:
    desk = Desk(bench, double)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.app.ui.set_editor_draft(Draft("look", (CAT, DOG)))
        await pilot.pause(0.05)
        assert "look[image #1][image #2]" in desk.bench.screen
        await pilot.press("backspace", "enter")
        assert desk.session.submitted == [("look", "steer")] and desk.session.images == [(CAT,)]
        desk.app.ui.set_editor_draft(Draft("", (DOG,)))
        await pilot.press("enter")
        assert desk.session.images[-1] == (DOG,)


async def test_a_draft_is_kept_and_the_message_waits_with_its_images(
    bench: Make, double: ModuleType
) -> None:
    desk = Desk(bench, double)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.app.editor.set_text("wait, also")
        desk.app.ui.set_editor_draft(Draft("look", (CAT,)))
        assert desk.text == "wait, also"
        await pilot.press("up", "enter")
        assert desk.session.submitted == [("look", "steer")] and desk.session.images == [(CAT,)]


async def test_escape_takes_images_back_too(bench: Make, double: ModuleType) -> None:
    desk = Desk(bench, double)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.session.emit(ActivityChanged("running"))
        desk.session.drafts = (Draft("look", (CAT,)),)
        await pilot.press("escape")
        await pilot.pause(0.05)
        assert "one queued message is back in the editor, with an image" in desk.bench.screen
        desk.session.emit(ActivityChanged("idle"))
        await pilot.press("enter")
        assert desk.session.images == [(CAT,)]
