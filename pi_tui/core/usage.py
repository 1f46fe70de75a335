"""What a model answer used and what it cost. Whole tokens, US dollars."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.json_fields import JSON, count_field, number_field


class Cost(Struct, frozen=True, rename="camel"):
    """Dollars, split the way providers bill them."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    total: float = 0


class Usage(Struct, frozen=True, rename="camel", omit_defaults=False):
    """Tokens of one model answer. `reasoning` is a part of `output`, not an addition.

    The four counts are None when a stored usage lacks them; the estimate rules need to know.
    """

    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    total_tokens: int | None = 0
    cost: Cost = Cost()
    reasoning: int | UnsetType = UNSET

    @property
    def sum_tokens(self) -> int:
        """Input, output, cache read and cache write together; missing counts are 0."""
        return (
            (self.input or 0)
            + (self.output or 0)
            + (self.cache_read or 0)
            + (self.cache_write or 0)
        )

    def plus(self, other: Usage) -> Usage:
        """Add two usages, field by field."""
        a, b = self.cost, other.cost
        reasoning = _int(self.reasoning) + _int(other.reasoning)
        return Usage(
            input=(self.input or 0) + (other.input or 0),
            output=(self.output or 0) + (other.output or 0),
            cache_read=(self.cache_read or 0) + (other.cache_read or 0),
            cache_write=(self.cache_write or 0) + (other.cache_write or 0),
            total_tokens=(self.total_tokens or self.sum_tokens)
            + (other.total_tokens or other.sum_tokens),
            cost=Cost(
                a.input + b.input,
                a.output + b.output,
                a.cache_read + b.cache_read,
                a.cache_write + b.cache_write,
                a.total + b.total,
            ),
            reasoning=reasoning or UNSET,
        )


def _int(value: int | UnsetType) -> int:
    return 0 if value is UNSET else value


def usage_from_data(data: JSON) -> Usage | None:
    """Decode a usage object; None when it is not an object."""
    if not isinstance(data, dict):
        return None
    cost = data.get("cost")
    cost = cost if isinstance(cost, dict) else {}
    reasoning = count_field(data, "reasoning")
    return Usage(
        input=count_field(data, "input"),
        output=count_field(data, "output"),
        cache_read=count_field(data, "cacheRead"),
        cache_write=count_field(data, "cacheWrite"),
        total_tokens=count_field(data, "totalTokens"),
        cost=Cost(
            number_field(cost, "input"),
            number_field(cost, "output"),
            number_field(cost, "cacheRead"),
            number_field(cost, "cacheWrite"),
            number_field(cost, "total"),
        ),
        reasoning=UNSET if reasoning is None else reasoning,
    )
