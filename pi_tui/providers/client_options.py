"""What the user set for the connections to all model servers. Times are seconds."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

NO_LIMIT_S = 86_400.0
"""What a limit of nothing stands for: nobody waits longer than a day."""


class ClientOptions(Struct, frozen=True):
    """`proxy` is an address, "" for what the environment says; servers on this machine need none.

    `idle_timeout_s` None: each client's usual one. `block_images`: no request carries an image.
    """

    proxy: str = ""
    idle_timeout_s: float | None = None
    block_images: bool = False

    def child_variables(self) -> Mapping[str, str]:
        """The proxy, as the provider library's process learns of it."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        return dict.fromkeys(names, self.proxy) if self.proxy else {}


USUAL = ClientOptions()
