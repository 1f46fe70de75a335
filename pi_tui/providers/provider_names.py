"""The providers this program knows by name: who serves them, where, which variables hold keys.

Facts only. `litellm` names are those of litellm's model file and of its model strings; a provider
missing here can still be used under litellm's own name. Nothing here reads the environment.
"""

from __future__ import annotations

import re

from msgspec import Struct


class ProviderFacts(Struct, frozen=True):
    """What is known of one provider.

    `base_url` is "" where litellm knows it. `litellm`: names in litellm's model file; the first is
    the prefix of its model strings. `key_names`: variables that may hold the key, best first.
    `ambient_names`: variables whose presence means that litellm can sign in by itself.
    `open_ended`: takes model ids that no list holds. `preferred`: patterns for the start model,
    best first; among several matches the highest version number wins.
    """

    id: str
    name: str
    api: str = "litellm"
    base_url: str = ""
    litellm: tuple[str, ...] = ()
    key_names: tuple[str, ...] = ()
    ambient_names: tuple[str, ...] = ()
    open_ended: bool = False
    preferred: tuple[str, ...] = ()


OWN_APIS = ("openai-completions", "anthropic-messages", "litellm")
"""Wire formats a model may name; the first two are spoken by clients of our own."""

LITELLM_APIS = {
    "openai-responses": "openai/responses/",
    "azure-openai-responses": "azure/responses/",
    "google-generative-ai": "gemini/",
    "google-vertex": "vertex_ai/",
    "bedrock-converse-stream": "bedrock/converse/",
    "mistral-conversations": "mistral/",
}
"""Formats other programs' model files name and litellm speaks for us, with its model prefix."""

LITELLM_MODEL_KEY = "litellmModel"
"""Where `Model.compat` keeps litellm's own model string."""

_OPENAI = "openai-completions"

KNOWN_PROVIDERS: tuple[ProviderFacts, ...] = (
    ProviderFacts(
        "anthropic",
        "Anthropic",
        "anthropic-messages",
        "https://api.anthropic.com",
        ("anthropic",),
        ("ANTHROPIC_API_KEY",),
        preferred=(r"claude-sonnet-\d[\d-]{0,3}", r"claude-.*"),
    ),
    ProviderFacts(
        "openai",
        "OpenAI",
        _OPENAI,
        "https://api.openai.com/v1",
        ("openai",),
        ("OPENAI_API_KEY",),
        preferred=(r"gpt-\d+(\.\d+)?", r"gpt-.*"),
    ),
    ProviderFacts(
        "gemini",
        "Google Gemini",
        litellm=("gemini",),
        key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        preferred=(r"gemini-pro-latest", r"gemini-[\d.]+-pro(-preview)?", r"gemini-[\d.]+-flash.*"),
    ),
    ProviderFacts(
        "openrouter",
        "OpenRouter",
        _OPENAI,
        "https://openrouter.ai/api/v1",
        ("openrouter",),
        ("OPENROUTER_API_KEY",),
        open_ended=True,
        preferred=(r"openrouter/auto",),
    ),
    ProviderFacts(
        "groq",
        "Groq",
        _OPENAI,
        "https://api.groq.com/openai/v1",
        ("groq",),
        ("GROQ_API_KEY",),
        preferred=(r"openai/gpt-oss-120b", r"qwen/.*"),
    ),
    ProviderFacts(
        "deepseek",
        "DeepSeek",
        _OPENAI,
        "https://api.deepseek.com/v1",
        ("deepseek",),
        ("DEEPSEEK_API_KEY",),
        preferred=(r"deepseek-v\d+(\.\d+)?-pro", r"deepseek-chat"),
    ),
    ProviderFacts(
        "mistral",
        "Mistral",
        _OPENAI,
        "https://api.mistral.ai/v1",
        ("mistral",),
        ("MISTRAL_API_KEY",),
        preferred=(r"devstral-medium-latest", r"mistral-large-latest", r"mistral-.*"),
    ),
    ProviderFacts(
        "xai",
        "xAI",
        _OPENAI,
        "https://api.x.ai/v1",
        ("xai",),
        ("XAI_API_KEY",),
        preferred=(r"grok-\d+(\.\d)?", r"grok-.*"),
    ),
    ProviderFacts(
        "cerebras",
        "Cerebras",
        _OPENAI,
        "https://api.cerebras.ai/v1",
        ("cerebras",),
        ("CEREBRAS_API_KEY",),
        preferred=(r"gpt-oss-120b",),
    ),
    ProviderFacts(
        "moonshot",
        "Moonshot",
        _OPENAI,
        "https://api.moonshot.ai/v1",
        ("moonshot",),
        ("MOONSHOT_API_KEY",),
        preferred=(r"kimi-k[\d.]+",),
    ),
    ProviderFacts(
        "zai",
        "Z.AI",
        _OPENAI,
        "https://api.z.ai/api/paas/v4",
        ("zai",),
        ("ZAI_API_KEY",),
        preferred=(r"glm-[\d.]+",),
    ),
    ProviderFacts(
        "together",
        "Together AI",
        _OPENAI,
        "https://api.together.xyz/v1",
        ("together_ai",),
        ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
        open_ended=True,
        preferred=(r".*Qwen3-Coder.*", r".*gpt-oss-120b"),
    ),
    ProviderFacts(
        "fireworks",
        "Fireworks AI",
        _OPENAI,
        "https://api.fireworks.ai/inference/v1",
        ("fireworks_ai",),
        ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
        open_ended=True,
        preferred=(r".*/glm-.*", r".*/kimi-k.*"),
    ),
    ProviderFacts(
        "deepinfra",
        "DeepInfra",
        _OPENAI,
        "https://api.deepinfra.com/v1/openai",
        ("deepinfra",),
        ("DEEPINFRA_API_KEY",),
        open_ended=True,
        preferred=(r"Qwen/Qwen3-Coder.*", r".*gpt-oss-120b"),
    ),
    ProviderFacts(
        "vercel-ai-gateway",
        "Vercel AI Gateway",
        _OPENAI,
        "https://ai-gateway.vercel.sh/v1",
        ("vercel_ai_gateway",),
        ("AI_GATEWAY_API_KEY", "VERCEL_AI_GATEWAY_API_KEY"),
        open_ended=True,
        preferred=(r"anthropic/claude-.*sonnet.*",),
    ),
    ProviderFacts(
        "cohere",
        "Cohere",
        litellm=("cohere_chat", "cohere"),
        key_names=("COHERE_API_KEY", "CO_API_KEY"),
        preferred=(r"command-a-.*",),
    ),
    ProviderFacts(
        "bedrock",
        "Amazon Bedrock",
        litellm=("bedrock", "bedrock_converse"),
        key_names=("AWS_BEARER_TOKEN_BEDROCK",),
        ambient_names=("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        open_ended=True,
        preferred=(r"us\.anthropic\.claude-sonnet-.*", r"anthropic\.claude-.*"),
    ),
    ProviderFacts(
        "vertex",
        "Google Vertex AI",
        litellm=("vertex_ai",),
        ambient_names=("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_PROJECT", "VERTEX_PROJECT"),
        open_ended=True,
        preferred=(r"gemini-[\d.]+-pro(-preview)?", r"gemini-[\d.]+-flash"),
    ),
    ProviderFacts(
        "azure",
        "Azure OpenAI",
        litellm=("azure",),
        key_names=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        open_ended=True,
        preferred=(r"gpt-\d+(\.\d+)?",),
    ),
    ProviderFacts(
        "azure-ai",
        "Azure AI Foundry",
        litellm=("azure_ai",),
        key_names=("AZURE_AI_API_KEY",),
        open_ended=True,
    ),
    ProviderFacts(
        "cloudflare",
        "Cloudflare Workers AI",
        litellm=("cloudflare",),
        key_names=("CLOUDFLARE_API_KEY",),
        open_ended=True,
    ),
    ProviderFacts(
        "watsonx",
        "IBM watsonx",
        litellm=("watsonx",),
        key_names=("WATSONX_APIKEY", "WATSONX_API_KEY", "WX_API_KEY"),
        open_ended=True,
    ),
    ProviderFacts(
        "huggingface",
        "Hugging Face",
        litellm=("huggingface",),
        key_names=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        open_ended=True,
    ),
    ProviderFacts(
        "sagemaker",
        "Amazon SageMaker",
        litellm=("sagemaker_chat", "sagemaker"),
        ambient_names=("AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
        open_ended=True,
    ),
    ProviderFacts(
        "oci",
        "Oracle Cloud",
        litellm=("oci",),
        ambient_names=("OCI_USER", "OCI_KEY_FILE"),
        open_ended=True,
    ),
    ProviderFacts("wandb", "Weights & Biases", litellm=("wandb",), key_names=("WANDB_API_KEY",)),
    ProviderFacts(
        "ollama",
        "Ollama",
        _OPENAI,
        "http://127.0.0.1:11434/v1",
        ("ollama_chat", "ollama", "lemonade"),
        open_ended=True,
    ),
    ProviderFacts(
        "lmstudio",
        "LM Studio",
        _OPENAI,
        "http://127.0.0.1:1234/v1",
        ("lm_studio",),
        open_ended=True,
    ),
    ProviderFacts(
        "llamacpp",
        "llama.cpp",
        _OPENAI,
        "http://127.0.0.1:8080/v1",
        ("llamafile",),
        open_ended=True,
    ),
    ProviderFacts("litellm", "litellm", open_ended=True),
)

LOCAL_PROVIDERS = frozenset({"ollama", "lmstudio", "llamacpp"})
"""Servers on this machine: no key, and their models are asked for, never listed from a file."""

UNSUPPORTED_LITELLM_PROVIDERS = frozenset(
    {"chatgpt", "github_copilot", "microsoft_365_copilot", "claude_code"}
)
"""Providers whose sign-in litellm does by printing a device code, which a child cannot show."""

_BY_ID = {facts.id: facts for facts in KNOWN_PROVIDERS}
_BY_LITELLM_NAME = {name: facts for facts in KNOWN_PROVIDERS for name in facts.litellm}
_ALIASES = {
    "google": "gemini",
    "vertex_ai": "vertex",
    "google-vertex": "vertex",
    "amazon-bedrock": "bedrock",
    "azure-openai": "azure",
    "lm-studio": "lmstudio",
    "llama.cpp": "llamacpp",
    "llama-cpp": "llamacpp",
    "z.ai": "zai",
    "moonshotai": "moonshot",
}


def provider_facts(provider: str) -> ProviderFacts | None:
    """What is known of the provider with exactly this id."""
    return _BY_ID.get(provider)


def canonical_provider(name: str) -> str:
    """Our id for a provider as people, other programs or litellm call it; unknown names stay."""
    if name in _BY_ID:
        return name
    lowered = name.lower()
    if lowered in _BY_ID:
        return lowered
    if lowered in _ALIASES:
        return _ALIASES[lowered]
    found = _BY_LITELLM_NAME.get(lowered)
    return found.id if found is not None else name


def provider_of_litellm(litellm_name: str) -> str:
    """Our id for the `litellm_provider` of litellm's model file."""
    if litellm_name.startswith("vertex_ai"):
        return "vertex"
    found = _BY_LITELLM_NAME.get(litellm_name)
    return found.id if found is not None else litellm_name


def litellm_prefix(provider: str) -> str:
    """The word before the slash in litellm's model strings."""
    facts = _BY_ID.get(provider)
    return facts.litellm[0] if facts is not None and facts.litellm else provider


def key_names(provider: str) -> tuple[str, ...]:
    """Variables that may hold the provider's key, best first; by custom `NAME_API_KEY`."""
    facts = _BY_ID.get(provider)
    if facts is not None:
        return facts.key_names
    return (re.sub(r"\W", "_", provider).upper() + "_API_KEY",)
