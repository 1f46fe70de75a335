"""A model as the program knows it: names, limits, abilities, prices. No keys, no clients."""

from __future__ import annotations

from msgspec import Struct, field

from pi_tui.core.messages import JSON, Cost, ThinkingLevel, Usage


class ModelCost(Struct, frozen=True, rename="camel"):
    """US dollars per million tokens."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


class Model(Struct, frozen=True, rename="camel"):
    """One model of one provider.

    `api` is the wire format: "openai-completions", "anthropic-messages", "litellm", "demo" or
    "scripted". `base_url` is "" where the provider library knows it. `thinking_level_map` maps a
    thinking level to the value the server wants (None: level not offered). `input` lists "text"
    and "image". `context_window` and `max_tokens` count tokens.
    """

    provider: str
    id: str
    api: str
    name: str = ""
    base_url: str = ""
    context_window: int = 128_000
    max_tokens: int = 16_384
    reasoning: bool = False
    thinking_level_map: dict[str, str | None] = field(default_factory=dict)
    input: tuple[str, ...] = ("text",)
    cost: ModelCost = ModelCost()
    compat: dict[str, JSON] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`provider/id`; the id may hold further slashes."""
        return f"{self.provider}/{self.id}"


class ModelChoice(Struct, frozen=True):
    """A model as the user named it, with the thinking level if one was named too."""

    model: Model
    thinking_level: ThinkingLevel | None = None


def price(model: Model, usage: Usage) -> Usage:
    """The same usage with its cost filled in from the model's prices."""
    c = model.cost
    cost_in = (usage.input or 0) * c.input / 1e6
    cost_out = (usage.output or 0) * c.output / 1e6
    read = (usage.cache_read or 0) * c.cache_read / 1e6
    write = (usage.cache_write or 0) * c.cache_write / 1e6
    return Usage(
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        total_tokens=usage.total_tokens,
        reasoning=usage.reasoning,
        cost=Cost(cost_in, cost_out, read, write, cost_in + cost_out + read + write),
    )
