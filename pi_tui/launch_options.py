"""The command line as the composition root reads it: checked, in the order it was typed.

Imports only the standard library, so that `--version` and `--help` cost nothing.
"""

from __future__ import annotations

import argparse
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["interactive", "text", "json", "list-models", "doctor"]


class LaunchOptions:
    """The command line, checked. Lists keep the order in which things were typed."""

    __slots__ = (
        "api_key",
        "append_system_prompt",
        "continue_latest",
        "debug_log",
        "doctor_file",
        "files",
        "messages",
        "mode",
        "model",
        "model_query",
        "name",
        "no_session",
        "repair_to",
        "resume",
        "session",
        "session_dir",
        "system_prompt",
        "thinking",
        "tools",
    )

    def __init__(self, args: argparse.Namespace, mode: Mode) -> None:
        self.mode: Mode = mode
        self.files: list[str] = [a[1:] for a in args.words if a.startswith("@") and len(a) > 1]
        self.messages: list[str] = [a for a in args.words if not a.startswith("@") or a == "@"]
        self.model: str | None = args.model
        self.thinking: str | None = args.thinking
        self.api_key: str | None = args.api_key
        self.continue_latest: bool = args.continue_latest
        self.resume: bool = args.resume
        self.session: str | None = args.session
        self.session_dir: str | None = args.session_dir
        self.no_session: bool = args.no_session
        self.debug_log: str | None = args.debug_log
        self.name: str | None = args.name
        self.tools: str | None = "" if args.no_tools else args.tools
        self.system_prompt: str | None = args.system_prompt
        self.append_system_prompt: list[str] = args.append_system_prompt
        self.model_query: str = args.list_models or ""
        self.doctor_file: str | None = getattr(args, "doctor_file", None)
        self.repair_to: str | None = getattr(args, "repair", None)
