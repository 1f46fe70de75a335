"""Token estimates with a real vocabulary, read from disk and never from the network.

The vocabulary is the cl100k file that comes inside the litellm package; litellm itself is not
imported. It costs about 33 MB and a quarter of a second, so it is loaded in a thread and only when
somebody says so. Until then, and where it cannot be loaded, characters are counted instead.

Other vendors' vocabularies cut finer, so the counts are raised by a tenth: estimates lean high.
Texts are split by a pattern of our own before they are encoded, which only needs to be about right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pi_tui.core.messages import Message
from pi_tui.core.tokens import IMAGE_CHARS, CharsEstimator, counted_texts
from pi_tui.providers.litellm_files import find_litellm_file

VOCABULARY_FILE = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
"""cl100k, under the name the tokenizer library itself would cache it."""
VOCABULARY_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

LEAN_HIGH_PERCENT = 110
TOKENS_A_MESSAGE = 4
"""What the frame around a message costs."""

_SPLIT = r"\s?\p{L}+|\p{N}{1,3}|\s?[^\s\p{L}\p{N}]+[\r\n]*|\s+"
_CHUNK_CHARS = 20_000
"""Longer texts are encoded in pieces: a run without a blank costs more than its length."""
_REMEMBERED_TEXTS = 4096


class Encoding(Protocol):
    """What is used of a vocabulary."""

    def encode_ordinary(self, text: str) -> list[int]: ...


def find_vocabulary() -> Path | None:
    """The vocabulary file; None where litellm is not installed or does not hold it."""
    return find_litellm_file("litellm_core_utils", "tokenizers", VOCABULARY_FILE)


def load_vocabulary(file: Path) -> Encoding | None:
    """Read a vocabulary; None when the file is not the one expected. Takes a quarter second."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(data).hexdigest() != VOCABULARY_SHA256:
        return None
    try:
        import tiktoken

        rows = (line.split() for line in data.splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
        return tiktoken.Encoding("pi-tui", pat_str=_SPLIT, mergeable_ranks=ranks, special_tokens={})
    except (ImportError, ValueError, binascii.Error):
        return None


class TiktokenEstimator:
    """A TokenEstimator over a vocabulary that may come later.

    Estimates change once, when the vocabulary is there; before and after that equal messages give
    equal numbers. `load` blocks, `start_loading` does not; both may be called more than once.
    """

    def __init__(
        self,
        file: Path,
        load: Callable[[Path], Encoding | None] = load_vocabulary,
    ) -> None:
        self._file = file
        self._load = load
        self._characters = CharsEstimator(cjk=True)
        self._encoding: Encoding | None = None
        self._lock = threading.Lock()
        self._tried = False
        self._thread: threading.Thread | None = None
        self._known: OrderedDict[str, int] = OrderedDict()

    @property
    def loaded(self) -> bool:
        """True once the vocabulary is used."""
        return self._encoding is not None

    def load(self) -> bool:
        """Load the vocabulary now; False when characters must do."""
        with self._lock:
            if not self._tried:
                self._tried = True
                self._encoding = self._load(self._file)
        return self.loaded

    def start_loading(self) -> None:
        """Load the vocabulary in a thread that does not keep the program alive."""
        if not self._tried and self._thread is None:
            self._thread = threading.Thread(target=self.load, name="vocabulary", daemon=True)
            self._thread.start()

    def message_tokens(self, message: Message) -> int:
        """Estimate one message."""
        encoding = self._encoding
        if encoding is None:
            return self._characters.message_tokens(message)
        texts, images = counted_texts(message)
        tokens = sum(self._text_tokens(encoding, text) for text in texts if text)
        tokens += images * IMAGE_CHARS // 4
        if not tokens:
            return 0
        return -(-tokens * LEAN_HIGH_PERCENT // 100) + TOKENS_A_MESSAGE

    def _text_tokens(self, encoding: Encoding, text: str) -> int:
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
        tokens = 0
        for start in range(0, len(text), _CHUNK_CHARS):
            piece = text[start : start + _CHUNK_CHARS]
            # Half a surrogate pair cannot be encoded; what stands for it costs about the same.
            piece = piece.encode("utf-8", "replace").decode()
            tokens += len(encoding.encode_ordinary(piece))
        with self._lock:
            self._known[text] = tokens
            if len(self._known) > _REMEMBERED_TEXTS:
                self._known.popitem(last=False)
        return tokens
