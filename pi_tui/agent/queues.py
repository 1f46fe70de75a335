"""Messages that wait: steering for the next safe point of a run, follow-ups for its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.messages import ImageContent, TextContent, UserMessage

Delivery: TypeAlias = Literal["steer", "followUp"]
DeliveryMode: TypeAlias = Literal["one-at-a-time", "all"]


class Draft(Struct, frozen=True):
    """What a person wrote, before it is a message. `images` follow the text."""

    text: str
    images: tuple[ImageContent, ...] = ()

    @property
    def described(self) -> str:
        """The text, and that there are images, for a line about it."""
        if not self.images:
            return self.text
        count = len(self.images)
        return f"{self.text} (with {'an image' if count == 1 else f'{count} images'})".lstrip()

    def message(self, timestamp: int) -> UserMessage:
        """The user message it becomes."""
        return UserMessage((TextContent(self.text), *self.images), timestamp)


class MessageQueues:
    """Two queues; each gives out one message at a time, or all at once."""

    def __init__(
        self,
        steering_mode: DeliveryMode = "one-at-a-time",
        follow_up_mode: DeliveryMode = "one-at-a-time",
    ) -> None:
        self.steering_mode = steering_mode
        self.follow_up_mode = follow_up_mode
        self._steering: deque[Draft] = deque()
        self._follow_up: deque[Draft] = deque()

    def __bool__(self) -> bool:
        return bool(self._steering or self._follow_up)

    def add(self, draft: Draft, delivery: Delivery) -> None:
        """Put a draft at the end of its queue."""
        (self._steering if delivery == "steer" else self._follow_up).append(draft)

    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What waits: steering texts, follow-up texts."""
        return tuple(d.text for d in self._steering), tuple(d.text for d in self._follow_up)

    def take_steering(self) -> tuple[Draft, ...]:
        """What is due after the current tool batch."""
        return _take(self._steering, self.steering_mode)

    def take_follow_up(self) -> tuple[Draft, ...]:
        """What is due when the agent would stop."""
        return _take(self._follow_up, self.follow_up_mode)

    def peek(self, *, more_turns: bool) -> tuple[Draft, ...]:
        """What the next poll would give; it stays in its queue."""
        queue, mode = self._steering, self.steering_mode
        if not queue and not more_turns:
            queue, mode = self._follow_up, self.follow_up_mode
        return tuple(queue)[: 1 if mode == "one-at-a-time" else None]

    def hold(self, drafts: Sequence[Draft]) -> None:
        """Put drafts at the front, where they can be seen: those that were about to be sent."""
        self._steering.extendleft(reversed(drafts))

    def take_held(self, drafts: Sequence[Draft]) -> tuple[Draft, ...]:
        """Take held drafts out again, those of them that nobody took back meanwhile."""
        held = tuple(d for d in drafts if any(d is waiting for waiting in self._steering))
        left = [w for w in self._steering if not any(w is d for d in held)]
        self._steering.clear()
        self._steering.extend(left)
        return held

    def holds_any(self, drafts: Sequence[Draft]) -> bool:
        """True when one of the drafts still waits for the next safe point."""
        return any(d is waiting for d in drafts for waiting in self._steering)

    def take_all(self) -> tuple[Draft, ...]:
        """Everything, steering first; both queues are empty afterwards."""
        drafts = (*self._steering, *self._follow_up)
        self._steering.clear()
        self._follow_up.clear()
        return drafts


def _take(queue: deque[Draft], mode: DeliveryMode) -> tuple[Draft, ...]:
    if not queue:
        return ()
    if mode == "one-at-a-time":
        return (queue.popleft(),)
    drafts = tuple(queue)
    queue.clear()
    return drafts
