"""The command line as the composition root reads it: checked, in the order it was typed.

Imports only the standard library, so that `--version` and `--help` cost nothing.
"""

from __future__ import annotations

import argparse
from typing import Literal, TypeAlias

Mode: TypeAlias = Literal["interactive", "text", "json", "list-models", "doctor"]


class LaunchOptions:
    """The command line, checked. Lists keep the order in which things were typed.

    A word `-` is standard input, which is read whenever it is piped; what follows `--` is always a
    message. Blank messages are none.
    """

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
        files = [word for word in args.words if word.startswith("@") and len(word) > 1]
        self.files: list[str] = [word[1:] for word in files]
        said = [word for word in args.words if word != "-" and word not in files]
        said += getattr(args, "literal", ())
        self.messages: list[str] = [message for message in said if message.strip()]
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


def plain_options(**given: object) -> LaunchOptions:
    """What nothing but these options would be on the command line, for a start from Python.

    Names are those of `LaunchOptions`; nothing is checked.
    """
    unset: dict[str, object] = dict.fromkeys(
        ("model", "thinking", "api_key", "session", "session_dir", "debug_log", "name", "tools")
    )
    unset |= dict.fromkeys(("continue_latest", "resume", "no_session", "no_tools"), False)
    unset |= {"system_prompt": None, "append_system_prompt": [], "list_models": None, "words": []}
    return LaunchOptions(argparse.Namespace(**{**unset, **given}), "text")
