"""Every setting this program uses: its name, type, default and who may set it.

The structs are the only list. A field `follow_up_mode` is the setting `followUpMode`; a field whose
type is a struct is an object of further settings. `Meta(description=…)` completes the sentence "it
must be …". Numbers carry their unit in the name: tokens, milliseconds, lines, cells.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, field

from pi_tui.core.messages import ThinkingLevel

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""

DEFAULT_RESERVE_TOKENS = 16_384
DEFAULT_KEEP_RECENT_TOKENS = 20_000
DEFAULT_TOOLS = ("read", "bash", "edit", "write")

Tokens: TypeAlias = Annotated[
    int,
    Meta(ge=0, le=MAX_SAFE_INTEGER, description=f"a whole number from 0 to {MAX_SAFE_INTEGER}"),
]
Milliseconds: TypeAlias = Annotated[
    int,
    Meta(ge=0, le=86_400_000, description="a whole number of milliseconds, at most one day"),
]
Attempts: TypeAlias = Annotated[int, Meta(ge=0, le=100, description="a whole number from 0 to 100")]
Text: TypeAlias = Annotated[str, Meta(min_length=1, description="a text that is not empty")]
ModelName: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^/]+/.+$", description='a model name like "provider/model"')
]
QueueMode: TypeAlias = Literal["one-at-a-time", "all"]


class CompactionPreferences(Struct, frozen=True, rename="camel"):
    """`compaction` as it stands in the files. The two numbers are the ordinary ones, here only so
    that wrong ones are told at the start; what holds for a model says `config.compaction`.
    """

    enabled: bool = True
    reserve_tokens: Tokens = DEFAULT_RESERVE_TOKENS
    keep_recent_tokens: Tokens = DEFAULT_KEEP_RECENT_TOKENS
    estimator: Literal["auto", "tiktoken", "chars"] = "auto"
    model: ModelName | None = None


class BranchSummarySettings(Struct, frozen=True, rename="camel"):
    reserve_tokens: Tokens = DEFAULT_RESERVE_TOKENS
    skip_prompt: bool = False


class ProviderRetrySettings(Struct, frozen=True, rename="camel"):
    """Limits inside one request. `timeout_ms` None: the idle time-out."""

    timeout_ms: Milliseconds | None = None
    max_retries: Attempts = 0
    max_retry_delay_ms: Milliseconds = 60_000


class RetrySettings(Struct, frozen=True, rename="camel"):
    enabled: bool = True
    max_retries: Attempts = 3
    base_delay_ms: Milliseconds = 2_000
    max_agent_delay_ms: Milliseconds = 60_000
    provider: ProviderRetrySettings = ProviderRetrySettings()


class ImageSettings(Struct, frozen=True, rename="camel"):
    auto_resize: bool = True
    block_images: bool = False


class Settings(Struct, frozen=True, rename="camel"):
    """All settings, checked, defaults filled in. Paths are as they were written."""

    default_provider: Text | None = None
    default_model: Text | None = None
    default_thinking_level: ThinkingLevel = "medium"
    model_thinking_levels: dict[str, ThinkingLevel] = field(default_factory=dict)
    enabled_models: tuple[Text, ...] = ()
    hide_thinking_block: bool = False
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    external_editor: Text | None = None
    double_escape_action: Literal["tree", "fork", "none"] = "tree"
    tree_filter_mode: Literal["default", "no-tools", "user-only", "labeled-only", "all"] = "default"
    default_project_trust: Literal["ask", "always", "never"] = "ask"
    default_tools: tuple[Text, ...] = DEFAULT_TOOLS
    session_dir: Text | None = None
    compaction: CompactionPreferences = CompactionPreferences()
    branch_summary: BranchSummarySettings = BranchSummarySettings()
    theme: Text = "system"
    quiet_startup: bool | Literal["header"] = False
    tui_mode: Literal["fullscreen", "regular"] = "fullscreen"
    editor_padding_x: Annotated[
        int, Meta(ge=0, le=20, description="a whole number of cells from 0 to 20")
    ] = 0
    output_pad: Annotated[
        int, Meta(ge=0, le=20, description="a whole number of cells from 0 to 20")
    ] = 1
    autocomplete_max_visible: Annotated[
        int, Meta(ge=1, le=50, description="a whole number of lines from 1 to 50")
    ] = 5
    show_hardware_cursor: bool = False
    retry: RetrySettings = RetrySettings()
    http_idle_timeout_ms: Milliseconds = 300_000
    http_proxy: Text | None = None
    shell_path: Text | None = None
    shell_command_prefix: Text | None = None
    shell_keep_keys: bool = False
    images: ImageSettings = ImageSettings()


USER_ONLY_SETTINGS: dict[str, str] = {
    "apiKey": "keys are the user's",
    "apiKeys": "keys are the user's",
    "auth": "keys are the user's",
    "baseUrl": "it decides where keys and conversations are sent",
    "defaultProjectTrust": "a project cannot vouch for itself",
    "enableAnalytics": "it sends data elsewhere",
    "enableInstallTelemetry": "it sends data elsewhere",
    "extensions": "it names programs to run",
    "externalEditor": "it names a program to run",
    "headers": "they are sent along with keys",
    "httpProxy": "it decides where keys and conversations are sent",
    "modelOverrides": "they decide where keys and conversations are sent",
    "models": "they decide where keys and conversations are sent",
    "npmCommand": "it names a program to run",
    "packages": "they are programs to run",
    "providers": "they decide where keys and conversations are sent",
    "selfUpdateCommand": "it names a program to run",
    "sessionShareDestination": "it sends data elsewhere",
    "shellCommandPrefix": "it is a command to run",
    "shellKeepKeys": "keys are the user's",
    "shellPath": "it names a program to run",
    "trusted": "a project cannot vouch for itself",
}
"""Top-level settings a project's file may never give, not even a trusted one, and why.

`sessionDir` is a case of its own: a project may name a directory inside itself, nothing else.
"""
