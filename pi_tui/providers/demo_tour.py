"""The demo's tour: from the messages of a request to what comes next. Pure and without memory.

Where the tour stands is read from the conversation: from the tool calls the demo made, which carry
the step in their id, and from notes in the demo's own summaries. So going back in the tree,
compacting, or opening the session again all lead to the right next step. Calls are fitted to the
tools the request declares; a step whose tool is missing is skipped and said to be.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from pi_tui.core.protocols import ModelRequest
from pi_tui.providers import demo_texts as texts
from pi_tui.providers.demo_summary import (
    file_in_summary,
    is_summary_request,
    steps_in_summary,
    summarise,
)

Step: TypeAlias = Literal["list", "read", "write", "edit", "run"]

_STEPS: tuple[Step, ...] = ("list", "read", "write", "edit", "run")
_ID = re.compile(r"demo_(list|read|write|edit|run)_")
_FILE_NAME = "pi-tui-demo.txt"
_READ_LINES = 40
_PREFERRED_FILES = re.compile(r"readme(\.\w+)?", re.IGNORECASE)
_READABLE = re.compile(r"[\w][\w .-]*\.(md|txt|rst|toml|py|js|ts|go|rs|c|h|java|rb|css|html)")
_LINE_NUMBER = re.compile(r"^\s*\d+[\t:|→]\s?")
_WORDS: dict[str, frozenset[str]] = {
    "yes": frozenset({"yes", "y", "ok", "okay", "sure", "ja", "please do", "yes please", "do it"}),
    "no": frozenset({"no", "n", "nope", "nein", "stop", "cancel", "no thanks", "no thank you"}),
    "go": frozenset({"go", "go on", "continue", "next", "start", "tour", "resume"}),
    "help": frozenset({"help", "?", "commands", "what can you do"}),
    "connect": frozenset({"connect", "models", "model", "login", "keys", "key", "setup"}),
    "long": frozenset({"long", "long text", "more"}),
}


class DemoAnswer(Struct, frozen=True):
    """What the demo says next, and the one call it makes, if any."""

    text: str
    call: ToolCall | None = None
    thought: str = ""


def next_answer(request: ModelRequest, models_file: str = "models.json") -> DemoAnswer:
    """The demo's answer to a request; the same request always gets the same answer."""
    last = request.messages[-1] if request.messages else None
    text = text_of(last.content) if isinstance(last, UserMessage) else ""
    if is_summary_request(text, bool(request.tools)):
        return DemoAnswer(summarise(text))
    return _Tour(request, models_file).answer()


def word_in(text: str) -> str:
    """Which of the demo's words the user typed; "" for everything else."""
    plain = re.sub(r"[^\w? ]", "", text.strip().strip("/").lower()).strip()
    plain = plain if plain == "?" else plain.rstrip("?").strip()
    return next((word for word, forms in _WORDS.items() if plain in forms), "")


class _Tour:
    """The standing of the tour as one request shows it."""

    def __init__(self, request: ModelRequest, models_file: str) -> None:
        self._messages = request.messages
        self._tools = {tool.name: tool for tool in request.tools}
        self._models_file = models_file
        self._results = self._find_results()
        self._done = self._find_done()

    def answer(self) -> DemoAnswer:
        """Decide by what came last: a tool's result, or words of the user."""
        messages = self._messages
        if messages and isinstance(messages[-1], ToolResultMessage):
            return self._after_last_step("")
        said = text_of(messages[-1].content) if messages else ""
        word = word_in(said)
        if word == "help":
            return DemoAnswer(texts.HELP, thought="Scripted thought: the user asked for help.")
        if word == "connect":
            return DemoAnswer(texts.CONNECT.format(models_file=self._models_file))
        if word == "long":
            return DemoAnswer(_long_text())
        before = messages[-2] if len(messages) > 1 else None
        if word != "no" and isinstance(before, ToolResultMessage) and self._results:
            return self._after_last_step(texts.STEERED.format(said=_clean(said)))
        return self._to_user(word)

    def _to_user(self, word: str) -> DemoAnswer:
        if not self._met():
            return self._introduction()
        if word in ("yes", "go"):
            return self._go_on()
        if word == "no":
            over = "edit" in self._done
            return DemoAnswer(texts.NOTHING_PENDING if over else texts.DECLINED)
        over = "edit" in self._done
        return DemoAnswer(texts.UNKNOWN.format(next="go" if over else "yes**, **no**, **go"))

    # -------------------------------------------------------- steps

    def _introduction(self) -> DemoAnswer:
        call = self._listing()
        if call is None:
            return DemoAnswer(texts.INTRO_WITHOUT_LISTING)
        return DemoAnswer(texts.INTRO, call, "Scripted thought: greet, then list the folder.")

    def _go_on(self) -> DemoAnswer:
        """The user agreed: do the first step that is open."""
        if "edit" in self._done:
            return self._ending("")
        if "write" in self._done:
            return self._edit()
        if "list" in self._done:
            return self._write()
        call = self._listing()
        return DemoAnswer("The files around us:", call) if call else self._ending("")

    def _after_last_step(self, opening: str) -> DemoAnswer:
        """Comment on the newest result and go on."""
        if not self._results:
            return DemoAnswer(opening + texts.UNKNOWN.format(next="go"))
        step, result = self._results[-1]
        follow: dict[Step, Callable[[str, ToolResultMessage], DemoAnswer]] = {
            "list": self._after_list,
            "read": self._after_read,
            "write": self._after_write,
            "edit": self._after_edit,
            "run": self._after_run,
        }
        return follow[step](opening, result)

    def _after_list(self, opening: str, result: ToolResultMessage) -> DemoAnswer:
        names = _names(result)
        if result.is_error:
            comment = texts.LISTING_FAILED.format(error=_error(result))
        elif not names:
            comment = texts.LISTED_EMPTY.format(tool=result.tool_name)
        else:
            count = "one entry" if len(names) == 1 else f"{len(names)} entries"
            example = f", among them `{_clean(names[0])}`"
            comment = texts.LISTED.format(tool=result.tool_name, count=count, example=example)
        if "read" in self._done and "write" not in self._done:
            return self._write(opening + comment)  # listed again, only to find a free name
        name = _file_to_read(names)
        if name is None or "read" not in self._tools:
            return self._offer(f"{opening}{comment} {texts.NOTHING_TO_READ}")
        call = self._call("read", "read", path=name, limit=_READ_LINES)
        said = f"{opening}{comment} {texts.READ_NEXT.format(name=name)}"
        return DemoAnswer(said, call, f"Scripted thought: {name} looks like a text file.")

    def _after_read(self, opening: str, result: ToolResultMessage) -> DemoAnswer:
        name = _clean(self._argument(result.tool_call_id, "path") or "the file")
        if result.is_error:
            comment = texts.READ_FAILED.format(name=name, error=_error(result))
            return self._offer(opening + comment)
        text = text_of(result.content)
        lines = _lines_of_file(text)
        if not lines:
            said = texts.READ_WITHOUT_LINES.format(name=name, said=_clean(text))
            return self._offer(opening + said)
        count = "one line" if len(lines) == 1 else f"{len(lines)} lines"
        first = next((_clean(line.lstrip("# ")) for line in lines if line.strip("# ")), "")
        heading = f"; the first words are “{first}”" if first else ""
        comment = texts.READ_DONE.format(lines=count, name=name, heading=heading)
        return self._offer(opening + comment)

    def _offer(self, comment: str) -> DemoAnswer:
        if "write" not in self._tools:
            return DemoAnswer(f"{comment}\n\n{texts.OFFER_WRITE_UNAVAILABLE}")
        offer = texts.OFFER_WRITE.format(name=self._free_name())
        return DemoAnswer(f"{comment}\n\n{offer}")

    def _write(self, comment: str = "") -> DemoAnswer:
        if "write" not in self._tools:
            return DemoAnswer(texts.OFFER_WRITE_UNAVAILABLE)
        if not any(step == "list" for step, _ in self._results):
            call = self._listing()  # after a compaction: look again which names are taken
            if call is not None:
                return DemoAnswer("Gladly. First I look which names are taken:", call)
        name = self._free_name()
        said = f"{comment} {texts.WRITE_NEXT.format(name=name)}".strip()
        call = self._call("write", "write", path=name, content=texts.FILE_TEXT)
        return DemoAnswer(said, call, "Scripted thought: the user agreed to the scratch file.")

    def _after_write(self, opening: str, result: ToolResultMessage) -> DemoAnswer:
        if result.is_error:
            return DemoAnswer(opening + texts.WRITE_FAILED.format(error=_error(result)))
        if "edit" not in self._tools:
            return self._ending(opening + texts.WRITE_DONE_NO_EDIT)
        return DemoAnswer(opening + texts.WRITE_DONE)

    def _edit(self) -> DemoAnswer:
        if "edit" not in self._tools:
            return self._ending(texts.WRITE_DONE_NO_EDIT)
        call = self._call(
            "edit",
            "edit",
            path=self._written_name(),
            oldText=texts.OLD_LINE,
            newText=texts.NEW_LINE,
        )
        return DemoAnswer(texts.EDIT_NEXT, call, "Scripted thought: change one word.")

    def _after_edit(self, opening: str, result: ToolResultMessage) -> DemoAnswer:
        if result.is_error:
            return DemoAnswer(opening + texts.EDIT_FAILED.format(error=_error(result)))
        if "bash" not in self._tools:
            return self._ending(opening + texts.EDIT_DONE)
        call = self._call("run", "bash", command=f"cat {self._written_name()}")
        return DemoAnswer(opening + texts.EDIT_DONE_RUN, call)

    def _after_run(self, opening: str, result: ToolResultMessage) -> DemoAnswer:
        said = texts.RUN_FAILED.format(error=_error(result)) if result.is_error else texts.RUN_DONE
        return self._ending(opening + said)

    def _ending(self, comment: str) -> DemoAnswer:
        wrote = "write" in self._done
        farewell = (
            texts.FAREWELL.format(name=self._written_name()) if wrote else texts.FAREWELL_NO_FILE
        )
        return DemoAnswer(f"{comment}\n\n{farewell}".strip())

    # -------------------------------------------------------- what the conversation shows

    def _find_results(self) -> list[tuple[Step, ToolResultMessage]]:
        """Results of the demo's own calls, oldest first."""
        found = []
        for message in self._messages:
            if isinstance(message, ToolResultMessage):
                match = _ID.match(message.tool_call_id)
                if match is not None:
                    step = next(step for step in _STEPS if step == match.group(1))
                    found.append((step, message))
        return found

    def _find_done(self) -> frozenset[str]:
        """Steps behind us: looking counts even when it failed, changing only when it worked."""
        done = {
            step
            for step, result in self._results
            if step in ("list", "read") or not result.is_error
        }
        return frozenset(done | steps_in_summary(self._summaries()))

    def _summaries(self) -> str:
        return "\n".join(
            text
            for message in self._messages
            if isinstance(message, UserMessage)
            and "<summary>" in (text := text_of(message.content))
        )

    def _met(self) -> bool:
        """True when the demo has spoken before in this conversation."""
        return bool(self._done) or any(
            isinstance(message, AssistantMessage)
            and message.provider == "demo"
            and not word_in(self._said_before(index))
            for index, message in enumerate(self._messages)
        )

    def _said_before(self, index: int) -> str:
        before = self._messages[index - 1] if index else None
        return text_of(before.content) if isinstance(before, UserMessage) else ""

    def _argument(self, call_id: str, name: str) -> str | None:
        for message in self._messages:
            for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
                if call.id == call_id:
                    value = call.arguments.get(name, call.arguments.get("file_path"))
                    return value if isinstance(value, str) else None
        return None

    def _free_name(self) -> str:
        """A scratch file name that the newest listing does not show."""
        listed = [result for step, result in self._results if step == "list"]
        taken = set(_names(listed[-1])) if listed else set()
        number = 2
        name = _FILE_NAME
        while name in taken:
            name = f"pi-tui-demo-{number}.txt"
            number += 1
        return name

    def _written_name(self) -> str:
        for step, result in reversed(self._results):
            if step == "write" and not result.is_error:
                return self._argument(result.tool_call_id, "path") or _FILE_NAME
        return file_in_summary(self._summaries()) or _FILE_NAME

    # -------------------------------------------------------- calls

    def _listing(self) -> ToolCall | None:
        if "ls" in self._tools:
            return self._call("list", "ls", path=".")
        return self._call("list", "bash", command="ls -1p") if "bash" in self._tools else None

    def _call(self, step: Step, tool: str, **arguments: JSON) -> ToolCall:
        """A call with an id that is new in this conversation and the same at every repetition."""
        stamps = "".join(f"{type(m).__name__}{m.timestamp};" for m in self._messages)
        digest = hashlib.sha256(stamps.encode()).hexdigest()[:10]
        return ToolCall(f"demo_{step}_{digest}", tool, fit_arguments(self._tools[tool], arguments))


def fit_arguments(tool: ToolDeclaration, wanted: dict[str, JSON]) -> dict[str, JSON]:
    """The arguments under the names that the tool declares; optional ones it lacks are left out."""
    properties = tool.parameters.get("properties")
    known: dict[str, JSON] = properties if isinstance(properties, dict) else {}
    if not known:
        return wanted
    if "oldText" in wanted and "edits" in known:
        items = known["edits"].get("items") if isinstance(known["edits"], dict) else None
        inner = items.get("properties", {}) if isinstance(items, dict) else {}
        edit = _renamed({k: wanted[k] for k in ("oldText", "newText")}, inner)
        return _renamed({"path": wanted["path"]}, known) | {"edits": [edit]}
    return _renamed(wanted, known)


_OTHER_NAMES = {
    "path": ("file_path", "filePath", "file"),
    "oldText": ("old_text", "old_string", "oldString"),
    "newText": ("new_text", "new_string", "newString"),
    "content": ("text",),
    "command": ("cmd",),
}


def _renamed(wanted: dict[str, JSON], known: dict[str, JSON]) -> dict[str, JSON]:
    fitted = {}
    for name, value in wanted.items():
        for candidate in (name, *_OTHER_NAMES.get(name, ())):
            if candidate in known or not known:
                fitted[candidate] = value
                break
    return fitted


# ---------------------------------------------------------------- text of tools


def _names(result: ToolResultMessage) -> list[str]:
    """Names in a listing, one per line; notes in brackets are none."""
    if result.is_error:
        return []
    lines = (line.strip() for line in text_of(result.content).splitlines())
    return [line for line in lines if line and not line.startswith(("[", "("))]


def _file_to_read(names: Sequence[str]) -> str | None:
    """A text file that is safe to show: a read-me first, never hidden files or unknown kinds."""
    files = [name for name in names if not name.endswith("/")]
    for name in files:
        if _PREFERRED_FILES.fullmatch(name):
            return name
    return next((name for name in files if _READABLE.fullmatch(name)), None)


def _lines_of_file(text: str) -> list[str]:
    """The lines of the file in what a tool returned, without the tool's own words around them.

    Empty when it is a single sentence: the file is empty, or no text.
    """
    lines = text.splitlines()
    numbered = [_LINE_NUMBER.sub("", line) for line in lines if _LINE_NUMBER.match(line)]
    return numbered or (lines if len(lines) > 1 else [])


def _error(result: ToolResultMessage) -> str:
    text = _clean(text_of(result.content))
    return f"“{text or 'no reason given'}”."


def _clean(text: str, limit_chars: int = 80) -> str:
    """Foreign text on one line, without characters that Markdown or a terminal would act on."""
    plain = "".join(c if c.isprintable() and c not in "`*_<>[]|\\" else " " for c in text)
    flat = " ".join(plain.split())
    return flat if len(flat) <= limit_chars else flat[: limit_chars - 1] + "…"


def _long_text() -> str:
    parts = [
        f"### {number}. {title}\n\n{body}"
        for number, (title, body) in enumerate(texts.LONG_PARTS, 1)
    ]
    return "\n\n".join([texts.LONG_OPENING, *parts, texts.LONG_CLOSING])
