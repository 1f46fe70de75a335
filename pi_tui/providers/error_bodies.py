"""What a failed reply says, whatever shape it came in, and the removal of keys from it.

Bodies are JSON of a dozen shapes, JSON inside a library's sentence, JSON inside a JSON string, a
web page of a proxy, or plain text. `read_error_body` finds the sentence meant for people and the
machine words beside it. It decides nothing; `errors.py` does.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from pi_tui.core.json_text import decode_json, mended_text
from pi_tui.core.messages import JSON
from pi_tui.core.redaction import Redactor, is_placeholder
from pi_tui.core.sanitise import sanitise_line

_MAX_DETAIL_CHARS = 600
_MAX_BODY_CHARS = 200_000


class ErrorBody(Struct, frozen=True):
    """`detail` is one line for people, perhaps empty. `codes` are machine words in lower case.

    `status` is a status number the body itself names; `is_web_page` means HTML, not an API answer.
    """

    detail: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None
    is_web_page: bool = False
    retry_delay: str = ""


def read_error_body(body: str) -> ErrorBody:
    """Find sentence, machine words and status in the body of a failed reply."""
    text = mended_text(body[:_MAX_BODY_CHARS]).strip()
    classes = tuple(name.lower() for name in re.findall(r"\blitellm\.(\w+):", text[:400]))
    text = _LIBRARY_FRAME.sub("", text)
    if not text:
        return ErrorBody(codes=classes)
    data = _json_in(text)
    if data is not None:
        found = list(_walk(data, 0))
        sentences = [value for kind, value in found if kind == "message"]
        words = [value.lower() for kind, value in found if kind == "code"]
        codes = tuple(dict.fromkeys([*classes, *words]))
        statuses = [int(value) for kind, value in found if kind == "status"]
        delays = [value for kind, value in found if kind == "delay"]
        # The innermost sentence is the model server's own; outer ones are a gateway's frame.
        return ErrorBody(
            one_line(max(sentences, key=_worth, default="")),
            codes,
            statuses[-1] if statuses else None,
            retry_delay=delays[0] if delays else "",
        )
    if re.match(r"\s*<(!doctype|html|head|\?xml)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        return ErrorBody(one_line(html.unescape(title.group(1))) if title else "", is_web_page=True)
    return ErrorBody(one_line(_without_json(text)), classes)


_LIBRARY_FRAME = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Timeout): |\w+Exception - )+")


def one_line(text: str) -> str:
    """Collapse white space, drop control characters and what they begin, bound the length."""
    text = sanitise_line(text)  # first: a sequence without its beginning could not be told any more
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(flat) > _MAX_DETAIL_CHARS:
        return flat[: _MAX_DETAIL_CHARS - 1].rstrip() + "…"
    return flat


_HIDDEN = "[key hidden]"


def redact(text: str, secrets: Sequence[str] = ()) -> str:
    """Hide the given secrets and everything that has the shape of a well-known key."""
    known = (secret for secret in secrets if not is_placeholder(secret))
    return Redactor(known, net="message", mark=_HIDDEN).redact(text)


# ---------------------------------------------------------------- digging

_MESSAGE_NAMES = ("message", "msg", "detail", "error_message", "error_description", "title", "raw")
_CODE_NAMES = ("type", "code", "status", "__type", "reason")


def _json_in(text: str) -> JSON | None:
    """The body as JSON, or the object inside a library's sentence; None when there is none."""
    starts = [0] if text[0] in "{[" else [m.start() for m in re.finditer(r"\{", text)][:3]
    for start in starts:
        end = text.rfind("}" if text[start] == "{" else "]") + 1
        try:
            data = decode_json(text[start:end])
        except ValueError:
            continue
        if isinstance(data, dict | list) and data:
            return data
    return None


def _without_json(text: str) -> str:
    """Prose of a text that holds something like JSON which could not be read."""
    if text[0] not in "{[":
        return text
    quoted = re.search(r'"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)+)"', text)
    return quoted.group(1).replace('\\"', '"') if quoted else ""


def _walk(data: JSON, depth: int) -> Iterator[tuple[str, str]]:
    """Yield (kind, value) of everything worth knowing, outermost first."""
    if depth > 8:
        return
    if isinstance(data, list):
        for item in data[:20]:
            yield from _walk(item, depth + 1)
        return
    if not isinstance(data, dict):
        return
    for name, value in data.items():
        if isinstance(value, str):
            yield from _string(name, value, depth)
        elif isinstance(value, dict | list):
            yield from _walk(value, depth + 1)
        elif isinstance(value, int) and not isinstance(value, bool):
            is_status = name in ("code", "status", "statusCode", "status_code", "http_code")
            if is_status and 400 <= value <= 599:
                yield "status", str(value)


def _string(name: str, value: str, depth: int) -> Iterator[tuple[str, str]]:
    nested = _json_in(value) if value[:1] in ("{", "[") else None
    if nested is not None:
        yield from _walk(nested, depth + 1)
    elif name == "retryDelay":
        yield "delay", value
    elif name in _CODE_NAMES:
        if value.isdigit() and 400 <= int(value) <= 599:
            yield "status", value
        elif len(value) <= 80:
            yield "code", value
    elif name in _MESSAGE_NAMES or (name == "error" and value):
        yield "message", value


_FRAMES = re.compile(
    r"^(provider returned error|error|bad request|internal server error)\.?$", re.IGNORECASE
)


def _worth(sentence: str) -> tuple[bool, bool]:
    """Prefer a sentence that is no gateway's frame and has more than one word; else the first."""
    return (not _FRAMES.match(sentence.strip()), " " in sentence.strip())
