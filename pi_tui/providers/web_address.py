"""Which texts are addresses requests can go to. Pure; loads no HTTP library."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_web_address(text: str) -> bool:
    """True for an http:// or https:// address with a host and, where one is given, a real port."""
    if not text.startswith(("http://", "https://")):
        return False
    if any(char.isspace() or not char.isprintable() for char in text):
        return False
    return bool(host_of(text))


def host_of(url: str) -> str:
    """The host name in lower case; "" where the address is none."""
    try:
        parts = urlsplit(url)
        # Asking for the port checks it: what is no number, or too large, is refused.
        return "" if parts.port == 0 else (parts.hostname or "").lower()
    except ValueError:
        return ""
