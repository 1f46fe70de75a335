"""Reads the lines of a file from its end to its beginning. Offsets and sizes are bytes."""

from __future__ import annotations

from collections.abc import Iterator

from pi_tui.storage.filesystem import FileSystem

BLOCK_BYTES = 1 << 20


def blocks_backwards(
    fs: FileSystem, fd: int, size_bytes: int, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[list[bytes]]:
    """Yield the lines of a file in batches, last ones first, each without its line end.

    What is read stands in the first `size_bytes`; memory follows the longest line. Raises OSError.
    """
    rest: list[bytes] = []  # parts of a line whose beginning was not read yet, last one first
    end = size_bytes
    while end > 0:
        start = max(0, end - block_bytes)
        block = _whole(fs, fd, start, end - start)
        end = start
        if b"\n" not in block:
            rest.append(block)
            continue
        first, *lines = block.split(b"\n")
        rest.append(lines.pop())
        lines.append(b"".join(reversed(rest)))
        rest = [first]
        lines.reverse()
        yield lines
    yield [b"".join(reversed(rest))]


def _whole(fs: FileSystem, fd: int, start: int, length_bytes: int) -> bytes:
    parts: list[bytes] = []
    while length_bytes:
        part = fs.read_at(fd, length_bytes, start)
        if not part:
            break  # the file was cut meanwhile
        parts.append(part)
        start += len(part)
        length_bytes -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
