"""Messages, piped text and `@file` arguments become prompts."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path

import pytest

from pi_tui.core.errors import UsageError
from pi_tui.core.messages import ImageContent
from pi_tui.headless.inputs import (
    MAX_IMAGE_FILE_BYTES,
    FileArguments,
    PipedText,
    Prompt,
    compose_prompts,
    image_type,
    read_file_arguments,
    read_piped,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


# ---------------------------------------------------------------- standard input


def test_piped_text_is_read_to_its_end() -> None:
    assert read_piped(io.BytesIO("ä\n".encode())) == PipedText("ä\n", 3)
    assert read_piped(io.BytesIO(b"\xef\xbb\xbfx")) == PipedText("x", 4)
    assert read_piped(io.BytesIO("ü".encode("utf-16"))) == PipedText("ü", 4)
    told = ("standard input is not UTF-8 text; odd bytes were replaced",)
    assert read_piped(io.BytesIO(b"a\xffb")) == PipedText("a\ufffdb", 3, told)


@pytest.mark.parametrize("data", [b"", b" \n\t"])
def test_blank_input_is_none(data: bytes) -> None:
    assert read_piped(io.BytesIO(data)) is None


def test_input_past_the_bound_is_refused() -> None:
    with pytest.raises(UsageError, match="standard input has more than 5 bytes"):
        read_piped(io.BytesIO(b"123456"), max_bytes=5)
    assert read_piped(io.BytesIO(b"12345"), max_bytes=5) == PipedText("12345", 5)


@pytest.mark.parametrize(
    "data",
    [b"\x7fELF\0\0", PNG, b"text, then\0", bytes(range(128, 256)) * 8, b"\xb1\xe0" * 40 + b"GBK"],
)
def test_what_is_no_text_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="standard input is not UTF-8 text"):
        read_piped(io.BytesIO(data))
    if image_type(data) is None:
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(UsageError, match="@file is neither text"):
            read_file_arguments(["file"], tmp_path.joinpath)


def test_text_in_another_encoding_is_text() -> None:
    found = read_piped(io.BytesIO("Grüße aus Köln, schöne Straße. ".encode("latin-1") * 50))
    assert found is not None
    assert found.text.startswith("Gr\ufffd")
    assert found.notices


def test_waiting_for_a_pipe_is_said_once() -> None:
    reading, writing = os.pipe()
    said = []

    def on_waiting() -> None:
        said.append(True)
        os.write(writing, b"late")
        os.close(writing)

    with os.fdopen(reading, "rb") as stream:
        found = read_piped(stream, on_waiting=on_waiting, waiting_after_s=0.01)
    assert (found, said) == (PipedText("late", 4), [True])


def test_a_ready_pipe_is_not_waited_for() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x")
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert read_piped(stream, on_waiting=lambda: pytest.fail("it was ready")) is not None


# ---------------------------------------------------------------- files


def test_text_files_become_blocks_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / 'b"<.txt').write_text("two")
    (tmp_path / "empty").write_text("")
    found = read_file_arguments(["a.txt", 'b"<.txt', "empty"], tmp_path.joinpath)
    assert found == FileArguments(
        '<file name="a.txt">\none\n</file>\n'
        '<file name="b&quot;&lt;.txt">\ntwo\n</file>\n'
        '<file name="empty">\n</file>'
    )


def test_images_are_known_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "picture.txt").write_bytes(PNG)
    found = read_file_arguments(["picture.txt"], tmp_path.joinpath)
    assert found == FileArguments(
        '<file name="picture.txt" type="image/png"></file>',
        (ImageContent(base64.b64encode(PNG).decode(), "image/png"),),
    )


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a..", "image/gif"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
        (b"RIFF\x01\x02\x03\x04WAVE", None),
        (b"%PDF-1.7", None),
        (b"", None),
    ],
)
def test_image_types(data: bytes, kind: str | None) -> None:
    assert image_type(data) == kind


def test_odd_bytes_are_told(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    found = read_file_arguments(["latin"], tmp_path.joinpath)
    assert "caf\ufffd" in found.text
    assert found.notices == ("@latin is not UTF-8 text; odd bytes were replaced",)


def test_a_pipe_can_be_named(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"from a command")
    os.close(writing)
    found = read_file_arguments([f"/dev/fd/{reading}"], Path)
    os.close(reading)
    assert "from a command" in found.text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "@missing: there is no such file"),
        ("folder", "@folder is a directory"),
        ("binary", "@binary is neither text nor a PNG"),
        ("large", "a file in a message may have"),
        ("huge", "has more than 20971520 bytes"),
        ("loop", "@loop cannot be read: too many levels"),
        ("nul\0", "cannot be read"),
    ],
)
def test_what_cannot_go_along_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "loop").symlink_to("loop")
    for sparse, size in (("large", 4 * 1024 * 1024 + 1), ("huge", MAX_IMAGE_FILE_BYTES + 1)):
        with (tmp_path / sparse).open("wb") as file:
            file.truncate(size)
    with pytest.raises(UsageError, match=words):
        read_file_arguments([name], tmp_path.joinpath)


# ---------------------------------------------------------------- together


def test_files_and_piped_text_go_with_the_first_message() -> None:
    image = ImageContent("QQ==", "image/png")
    files = FileArguments('<file name="a">\nx\n</file>', (image,))
    assert compose_prompts(["first", " ", "second"], PipedText("diff", 4), files) == (
        Prompt(
            '<file name="a">\nx\n</file>\n\n<stdin bytes="4">\ndiff\n</stdin>\n\nfirst', (image,)
        ),
        Prompt("second"),
    )


def test_piped_text_alone_is_the_message() -> None:
    assert compose_prompts([], PipedText("do it\n", 6)) == (Prompt("do it\n"),)


def test_nothing_to_send_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="nothing to send"):
        compose_prompts(["", "  "])
