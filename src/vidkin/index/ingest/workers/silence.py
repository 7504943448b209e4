"""How long nothing has been heard from whoever reads a file."""

from __future__ import annotations

import time

from vidkin.features import Phase

__all__ = ["HANG_TIMEOUT", "Silence"]

HANG_TIMEOUT = 120.0
"""Seconds without a packet read or a frame decoded after which a decoder counts as hung."""

# Between two looks no more silence than this is counted, in seconds: longer gaps mean that whoever looks was busy or
# stopped, or the machine asleep, and say nothing about the one who is silent.
_MOST_UNSEEN = 1.0
# A network may take that many times longer for its frames than a decoder may be silent.
_DESCRIBING_FACTOR = 5


class Silence:
    """Measures the silence of one reader of files.

    Args:
        hang_timeout: Seconds that a decoder may be silent; an extractor may for five times as long.
    """

    def __init__(self, hang_timeout: float = HANG_TIMEOUT) -> None:
        self._hang_timeout = hang_timeout
        self._phase: Phase = "decoding"
        self.seconds = 0.0
        self._looked = time.monotonic()

    def end(self, phase: Phase | None = None) -> None:
        """Something was heard; ``phase`` says what is done from now on, None that this has not changed."""
        self.seconds = 0.0
        self._looked = time.monotonic()
        self._phase = phase or self._phase

    def measure(self) -> str | None:
        """Count the time since the last call of a method; the cause, one line, once that makes a hang."""
        now = time.monotonic()
        self.seconds += min(now - self._looked, _MOST_UNSEEN)
        self._looked = now
        who, limit = "decoder", self._hang_timeout
        if self._phase == "describing":
            who, limit = "extractor", _DESCRIBING_FACTOR * self._hang_timeout
        return f"the {who} hung: no progress for {limit:g} s" if self.seconds > limit else None
