"""The text for the summariser and the block of file lists."""

import re

from pi_tui.core.compaction.files import file_lists, file_lists_text
from pi_tui.core.compaction.serialize import (
    message_parts,
    serialize_conversation,
    truncation_marker,
)
from pi_tui.core.messages import message_from_data

GROUP = "serialize"


def with_markers(text):
    return re.sub(r"\{\{TRUNCATED:(\d+)\}\}", lambda m: truncation_marker(int(m[1])), text)


def check_parts(messages, parts):
    """Every part stands at its place, with its label and what it must contain."""
    written = [(at, part) for at, message in enumerate(messages) for part in message_parts(message)]
    written = [(at, part) for at, part in written if not part.startswith("[Assistant thinking]")]
    assert [(at, part[1 : part.index("]")]) for at, part in written] == [
        (part["message"], part["label"]) for part in parts
    ]
    for (_, text), part in zip(written, parts, strict=True):
        position = 0
        for wanted in part.get("containsInOrder", []):
            position = text.index(wanted, position) + len(wanted)
        if "truncatedChars" in part:
            marker = truncation_marker(part["truncatedChars"])
            assert text.endswith(marker)
            body = text.removeprefix(f"[{part['label']}]: ").removesuffix(marker)
            assert len(body.encode("utf-16-le")) // 2 == part["keptChars"]


def test_serialize(case, expected):
    if case["op"] == "file_lists":
        given = case["input"]
        lists = file_lists(given["read"], [*given["edited"], *given["written"]])
        assert list(lists.read_files) == expected["readFiles"]
        assert list(lists.modified_files) == expected["modifiedFiles"]
        assert file_lists_text(lists) == expected["text"]
        return
    messages = [message_from_data(data) for data in case["input"]["messages"]]
    check_parts(messages, expected["parts"])
    text = serialize_conversation(messages)
    if "derived_with_thinking" in expected and expected["derived_with_thinking"] is not None:
        assert text == with_markers(expected["derived_with_thinking"])
    elif expected["expected_without_thinking"] is not None:
        assert text == with_markers(expected["expected_without_thinking"])
