"""The conversation on the screen: blocks of `core.transcript`, drawn lazily and safely."""

from pi_tui.tui.transcript.key_hints import KeyHints
from pi_tui.tui.transcript.widget import Transcript

__all__ = ["KeyHints", "Transcript"]
