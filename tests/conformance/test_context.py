"""Path, selection and projection."""

import hashlib

from pi_tui.core.messages import (
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    ImageContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    UnknownMessage,
    role_of,
)
from pi_tui.core.projection import project, to_llm

GROUP = "context"


def fingerprint(message):
    if isinstance(message, BashExecutionMessage):
        return f"{message.command}\n{message.output}"
    if isinstance(message, BranchSummaryMessage | CompactionSummaryMessage):
        return message.summary
    if isinstance(message, UnknownMessage):
        content = message.data.get("content")
        return content if isinstance(content, str) else ""
    if isinstance(message.content, str):
        return message.content
    parts = []
    for block in message.content:
        if isinstance(block, TextContent):
            parts.append(block.text)
        elif isinstance(block, ThinkingContent):
            parts.append(block.thinking)
        elif isinstance(block, ToolCall):
            parts.append(block.name)
        elif isinstance(block, ImageContent):
            parts.append(block.mime_type)
    return "\n".join(parts)


def row(projected):
    message = projected.message
    sent = to_llm(message)
    text = fingerprint(message)
    return [
        projected.entry_id,
        role_of(message),
        "system" if isinstance(message, SystemMessage) else sent and role_of(sent),
        len(text.encode("utf-16-le")) // 2,
        hashlib.sha256(text.encode()).hexdigest()[:16],
    ]


def test_context(case, expected, check, tree_for):
    tree = tree_for(case["input"]["session"])
    projection = project(tree.path(case["input"]["leafId"]))
    model = projection.model
    found = {
        "selectedEntryIds": list(projection.selected_ids),
        "messages": [row(p) for p in projection.messages],
        "thinkingLevel": projection.thinking_level,
        "model": model and {"provider": model[0], "modelId": model[1]},
    }
    check(found, {field: expected[field] for field in found})
    assert project(tree.context_path(case["input"]["leafId"])).messages == projection.messages
