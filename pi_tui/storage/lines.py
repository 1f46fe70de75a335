"""One line of a session file: bytes to JSON value and back.

Reading accepts what the format's other writers produce: lone surrogates and broken UTF-8 (both
become U+FFFD), numbers out of range, any depth of nesting. Writing gives exactly one line,
whatever the text holds. Nothing here knows where a line stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec

from pi_tui.core.json_text import mended
from pi_tui.core.messages import JSON
from pi_tui.storage.glue import cuts_of
from pi_tui.storage.nesting import MAX_DEPTH, decode_capped, is_deep, number

_decode = msgspec.json.Decoder().decode
_encoder = msgspec.json.Encoder(enc_hook=str)

_EDGES = b"\0 \t\r\n"


def decode_line(line: bytes) -> JSON:
    """Decode one line. Raises ValueError when it is not JSON."""
    try:
        value = _decode(line)
    except RecursionError:
        return mended(decode_capped(line.decode("utf-8", "replace")))
    except msgspec.MsgspecError:
        return _decode_oddities(line.decode("utf-8", "replace"))
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and is_deep(value):
        return decode_capped(line.decode("utf-8", "replace"))
    return value


def _decode_oddities(text: str) -> JSON:
    try:
        value = json.loads(text, parse_constant=_refuse, parse_int=number)
    except RecursionError:
        return mended(decode_capped(text))
    if is_deep(value):
        value = decode_capped(text)
    return mended(value)


def _refuse(constant: str) -> JSON:
    raise ValueError(f"{constant} is not JSON")


def encode_line(data: Mapping[str, JSON]) -> bytes:
    """Encode one object as one line, line end included; JSON compact, text as UTF-8.

    Characters at which careless readers split lines are escaped, lone surrogates replaced, values
    JSON has no form for written as text. Raises RecursionError for absurdly deep values.
    """
    try:
        line = _encoder.encode(data)
    except UnicodeEncodeError:
        line = _encoder.encode(mended(data))
    if b"\xe2\x80" in line:
        line = line.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in line:
        line = line.replace(b"\xc2\x85", b"\\u0085")
    return line + b"\n"


def objects_of(line: bytes) -> Iterator[dict[str, JSON]]:
    """The objects that can be read from a line, whole or in pieces, in their order."""
    for _, piece in pieces_of(line):
        try:
            value = decode_line(piece)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def pieces_of(line: bytes) -> list[tuple[int, bytes]]:
    """Parts of a bad line that may be whole entries, and what is between, with their offsets.

    A crash leaves blocks of NUL bytes, and a careless writer glues its entry to another one or to
    a fragment.
    """
    # One character for each byte, so that places stay; what is not ASCII stands inside strings.
    cuts = sorted({0, *cuts_of(line.decode("latin-1")), len(line)})
    found = []
    for start, end in pairwise(cuts):
        piece = line[start:end]
        body = piece.lstrip(_EDGES)
        if body:
            found.append((start + len(piece) - len(body), body.rstrip(_EDGES)))
    return found


def is_blank(line: bytes) -> bool:
    """True for a line of nothing but white space."""
    return not line.strip()
