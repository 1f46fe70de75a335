"""pi-tui: a terminal coding agent with a tree of conversations and a compaction engine."""

__version__ = "0.1.0"
