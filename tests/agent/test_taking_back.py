"""Queued messages come back as they were written, with their images."""

from __future__ import annotations

from pi_tui.core.events import QueueUpdate
from pi_tui.core.messages import ImageContent


async def test_drafts_come_back_with_their_images(rig):
    image = ImageContent("Y2F0", "image/png")
    rig.provider.add("x")
    session = rig.session()
    heard = []
    session.subscribe(heard.append)
    session.submit("go")
    session.submit("later", "followUp", (image,))
    session.submit("now")
    drafts = session.take_back_drafts()
    assert [(draft.text, draft.images) for draft in drafts] == [("now", ()), ("later", (image,))]
    assert heard[-1] == QueueUpdate((), ()) and session.queued == ((), ())
    assert session.take_back_drafts() == ()
    await session.wait_idle()
