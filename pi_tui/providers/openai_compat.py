"""What servers of OpenAI chat completions really take: defaults by address, and overrides.

The names in `Model.compat` are those of models files in use elsewhere (`supportsStore`,
`maxTokensField`, …), so that such a file works unchanged. Values of a wrong type are ignored;
the models file is checked where it is read. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from pi_tui.core.messages import JSON
from pi_tui.providers.web_address import host_of


class OpenAICompat(Struct, frozen=True, rename="camel"):
    """How to word a request for one server.

    `max_tokens_field` is "max_tokens" or "max_completion_tokens"; `thinking_format` one of openai,
    openrouter, deepseek, zai, qwen, qwen-chat-template, chat-template, together, none;
    `cache_control_format` "anthropic" or ""; `tool_call_ids` "any" or "mistral" (exactly nine
    letters or digits). `requires_thinking_as_text` sends earlier thinking as plain text,
    `requires_reasoning_content…` sends it in the field it came from.
    """

    supports_store: bool = False
    supports_developer_role: bool = False
    supports_reasoning_effort: bool = True
    supports_usage_in_streaming: bool = True
    supports_finish_reason: bool = True
    supports_prompt_cache_key: bool = False
    max_tokens_field: str = "max_tokens"
    requires_tool_result_name: bool = False
    requires_assistant_after_tool_result: bool = False
    requires_thinking_as_text: bool = False
    requires_reasoning_content_on_assistant_messages: bool = False
    thinking_format: str = "openai"
    cache_control_format: str = ""
    tool_call_ids: str = "any"
    lowest_effort: str = "low"
    chat_template_kwargs: dict[str, JSON] = {}
    open_router_routing: dict[str, JSON] = {}
    vercel_gateway_routing: dict[str, JSON] = {}


_BY_HOST: tuple[tuple[str, OpenAICompat], ...] = (
    (
        "api.openai.com",
        OpenAICompat(
            supports_store=True,
            supports_developer_role=True,
            supports_prompt_cache_key=True,
            max_tokens_field="max_completion_tokens",
            lowest_effort="minimal",
        ),
    ),
    ("openrouter.ai", OpenAICompat(thinking_format="openrouter", lowest_effort="minimal")),
    ("groq.com", OpenAICompat(max_tokens_field="max_completion_tokens")),
    ("cerebras.ai", OpenAICompat(max_tokens_field="max_completion_tokens")),
    (
        "deepseek.com",
        OpenAICompat(
            thinking_format="deepseek",
            supports_reasoning_effort=False,
            requires_reasoning_content_on_assistant_messages=True,
        ),
    ),
    (
        "mistral.ai",
        OpenAICompat(
            supports_reasoning_effort=False,
            supports_usage_in_streaming=False,  # refused as unknown; the usage comes anyway
            requires_tool_result_name=True,
            requires_assistant_after_tool_result=True,
            tool_call_ids="mistral",
        ),
    ),
    ("x.ai", OpenAICompat(supports_reasoning_effort=False)),
    ("z.ai", OpenAICompat(thinking_format="zai", supports_reasoning_effort=False)),
    ("bigmodel.cn", OpenAICompat(thinking_format="zai", supports_reasoning_effort=False)),
    (
        "moonshot.ai",
        OpenAICompat(
            supports_reasoning_effort=False, requires_reasoning_content_on_assistant_messages=True
        ),
    ),
    ("together.xyz", OpenAICompat(thinking_format="together")),
    ("together.ai", OpenAICompat(thinking_format="together")),
    ("aliyuncs.com", OpenAICompat(thinking_format="qwen", supports_reasoning_effort=False)),
)
"""By host or parent domain. Servers that are not here get the defaults: the smallest set of
parameters that Ollama, LM Studio, vLLM and llama.cpp all take or ignore."""


def guess_compat(base_url: str, model_id: str = "") -> OpenAICompat:
    """The defaults for a server, told by its address."""
    host = host_of(base_url)
    found = next(
        (compat for domain, compat in _BY_HOST if host == domain or host.endswith("." + domain)),
        OpenAICompat(),
    )
    if host.endswith("openrouter.ai") and model_id.startswith("anthropic/"):
        return msgspec.structs.replace(found, cache_control_format="anthropic")
    return found


def compat_for(base_url: str, model_id: str, *overrides: Mapping[str, JSON]) -> OpenAICompat:
    """The defaults for the server with overrides applied, later ones last."""
    compat = guess_compat(base_url, model_id)
    changes: dict[str, JSON] = {}
    for override in overrides:
        for field in msgspec.structs.fields(OpenAICompat):
            value = override.get(field.encode_name)
            if isinstance(value, type(getattr(compat, field.name))):
                changes[field.name] = value
    return msgspec.structs.replace(compat, **changes) if changes else compat
