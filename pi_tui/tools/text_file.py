"""Bytes of a text file to text and back without loss: byte order marks, UTF-16, invalid bytes.

Invalid UTF-8 bytes travel as lone surrogates (PEP 383), so that writing the text back gives the
same bytes. Line ends are left as they are. A file with NUL bytes and no UTF-16 mark is binary.
"""

from __future__ import annotations

import codecs

from msgspec import Struct

from pi_tui.core.errors import ToolError

SNIFF_BYTES = 8192

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_MAGIC = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an office document, a jar, a wheel)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x7fELF", "an ELF executable or library"),
    (b"MZ", "a Windows executable or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O executable or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O universal binary"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"ID3", "MP3 audio"),
    (b"OggS", "Ogg audio or video"),
    (b"fLaC", "FLAC audio"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"wOFF", "a web font"),
    (b"wOF2", "a web font"),
)


class Encoding(Struct, frozen=True):
    """How a file is encoded: the codec and the byte order mark it starts with."""

    codec: str = "utf-8"
    mark: bytes = b""

    @property
    def errors(self) -> str:
        """The error handler that loses nothing where the codec has one."""
        return "surrogateescape" if self.codec == "utf-8" else "strict"

    def decode(self, data: bytes) -> str:
        """Decode a whole file, mark dropped. Raises UnicodeDecodeError for bad UTF-16 or -32."""
        return data[len(self.mark) :].decode(self.codec, self.errors)

    def encode(self, text: str) -> bytes:
        """Encode a whole file, mark put back."""
        return self.mark + text.encode(self.codec, self.errors)


def sniff_encoding(head: bytes) -> Encoding | None:
    """The encoding of a file by its first bytes; None means binary."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return Encoding(codec, mark)
    return None if b"\0" in head else Encoding()


def not_utf8(text: str) -> bool:
    """Whether a decoded text holds bytes that are not valid UTF-8."""
    return not text.isascii() and any("\udc80" <= char <= "\udcff" for char in set(text))


def image_type(head: bytes) -> str | None:
    """The MIME type of an image the models take, by magic bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def binary_kind(head: bytes) -> str:
    """What a binary file seems to be."""
    image = image_type(head)
    if image:
        return f"an image ({image})"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "a binary file")


def decode_for_edit(data: bytes, name: str) -> tuple[str, Encoding]:
    """The text of a file that is going to be written back. Raises ToolError when it is no text."""
    encoding = sniff_encoding(data[:SNIFF_BYTES])
    if encoding is None or (encoding.codec == "utf-8" and b"\0" in data):
        raise ToolError(
            f"{name} is {binary_kind(data[:SNIFF_BYTES])}, not text; it was not changed. "
            "Use a program made for this format, through bash."
        )
    try:
        text = encoding.decode(data)
        faithful = encoding.codec == "utf-8" or encoding.encode(text) == data
    except UnicodeError:
        faithful = False
    if not faithful:
        raise ToolError(
            f"{name} has a {encoding.codec} byte order mark but is not valid {encoding.codec}; "
            "it was not changed."
        )
    return text, encoding
