"""Detect hangs: how long the reader of a file has shown no progress."""

from __future__ import annotations

import time

from vidkin.features import Phase

__all__ = ["HANG_TIMEOUT", "Silence"]

HANG_TIMEOUT = 120.0
"""Seconds without a packet read or a frame decoded after which a decoder counts as hung."""

# At most this many seconds of silence are counted between two checks: longer gaps mean that the checking process was
# busy or stopped, or the machine asleep, and say nothing about the reader.
_MOST_UNSEEN = 1.0
# An extractor can be silent this many times as long as a decoder.
_DESCRIBING_FACTOR = 5


class Silence:
    """Measures the silence of one reader of files.

    Args:
        hang_timeout: Seconds that a decoder can be silent; an extractor can be silent five times as long.
    """

    def __init__(self, hang_timeout: float = HANG_TIMEOUT) -> None:
        self._hang_timeout = hang_timeout
        self._phase: Phase = "decoding"
        self.seconds = 0.0
        self._looked = time.monotonic()

    def end(self, phase: Phase | None = None) -> None:
        """Note a sign of life; ``phase`` is the new phase of the work, None if it has not changed."""
        self.seconds = 0.0
        self._looked = time.monotonic()
        self._phase = phase or self._phase

    def measure(self) -> str | None:
        """Add the time since the last call; returns the cause in one line once this counts as a hang."""
        now = time.monotonic()
        self.seconds += min(now - self._looked, _MOST_UNSEEN)
        self._looked = now
        who, limit = "decoder", self._hang_timeout
        if self._phase == "describing":
            who, limit = "extractor", _DESCRIBING_FACTOR * self._hang_timeout
        return f"the {who} hung: no progress for {limit:g} s" if self.seconds > limit else None
