"""How counts and durations are written for people."""

from __future__ import annotations


def compact_count(count: int) -> str:
    """999, 1.0k to 9.9k, 10k to 999k, then 1.0M."""
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}k"
    if count < 999_500:
        return f"{round(count / 1000)}k"
    if count < 9_950_000:
        return f"{count / 1_000_000:.1f}M"
    return f"{round(count / 1_000_000)}M"


def counted_tokens(count: int) -> str:
    """`1 token`, `12,345 tokens`."""
    return f"{count:,} {'token' if count == 1 else 'tokens'}"


def short_duration(ms: int) -> str:
    """`0.4s`, `12s`, `3m 05s`, `2h 10m`."""
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"
