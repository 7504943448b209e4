"""Sound scores for pairs of files, as evidence in addition to the picture or as the basis of groups.

Sound alone never makes a file removable: a match found only by sound is doubtful.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import permutations

import numpy as np

from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.index.duplicates.comparisons import Comparisons, PairResult
from vidkin.index.query.sound import ADD_SOUND, By, check_by, score_by
from vidkin.index.storage.sound_files import SoundSearch
from vidkin.similarity import UNRELATED
from vidkin.similarity.sound import SoundFeatures, SoundScore, best_of_tracks

_logger = logging.getLogger(__name__)

ContentPair = tuple[str, str]

DIFFERENT_SOUND = "different sound"
"""Doubt about two files that look alike but sound different, such as two takes of a scene, or two talks over the same
title card."""

ONLY_SOUND = "only the sound is the same"
"""Doubt about two files that sound alike but look different: sharing a song does not make two videos copies."""

# Minimum number of landmarks in each track for sounds to be called different: about three seconds.
_MIN_LANDMARKS = 60
# Pieces of a track that are looked up: their number, their duration in seconds, and the minimum number of landmarks.
_PIECES, _PIECE_SECONDS, _MIN_PIECE_LANDMARKS = 4, 8.0, 80


@dataclass(slots=True)
class HeardPairs:
    """Computes and caches sound scores of pairs of contents.

    Attributes:
        sound: Audio fingerprints of the index; None if it has none.
        known: Cache that receives the scores.
        by: Basis of the score of a pair.
        lock: Held while ``known`` is modified or saved, because groups may be processed in parallel.
        found: Sound matches keyed by pair of contents, with the first content as the query.
    """

    sound: SoundSearch | None
    known: Comparisons
    by: By = "picture"
    lock: threading.RLock = field(default_factory=threading.RLock)
    found: dict[ContentPair, SoundScore] = field(default_factory=dict)
    _looked_up: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        check_by(self.by)
        if self.sound is None and self.by != "picture":
            raise InvalidArgumentError(
                f"by={self.by!r} needs audio fingerprints, which the index does not have; {ADD_SOUND}"
            )

    def score(self, first: str, second: str) -> float | None:
        """Return the sound score of two contents in [0, 1]; None if it is unknown or a content has no sound."""
        if self.sound is None:
            return None
        if first == second:
            return 1.0 if self._tracks(first) else None
        key = " ".join(sorted((first, second)))
        with self.lock:
            score = self.known.sounds.get(key)
        if score is None:
            found = self._compare(first, second)
            if found is None:
                return None
            score = found.score
            with self.lock:
                self.known.sounds[key] = score
        return score

    def known_matches(self, contents: Iterable[str]) -> dict[ContentPair, SoundScore]:
        """Return the known sound matches between these contents."""
        pairs = permutations(contents, 2) if self.found else ()
        return {pair: self.found[pair] for pair in pairs if pair in self.found}

    def difference(self, first: str, second: str) -> str:
        """Return a doubt if two contents have unrelated sound, and an empty string otherwise.

        Equal sound does not remove other doubts: two takes with the same song are not copies.
        """
        if self.sound is None or first == second:
            return ""
        tracks = [*self._tracks(first), *self._tracks(second)]
        if min(map(len, tracks), default=0) < _MIN_LANDMARKS:
            return ""
        score = self.score(first, second)
        return DIFFERENT_SOUND if score is not None and score < UNRELATED else ""

    def result(self, first: str, second: str, seen: PairResult, lengths: tuple[float, float]) -> PairResult:
        """Return the result of a pair on the basis given by ``by``.

        Args:
            first, second: Contents.
            seen: The result by picture, with the first content as the query.
            lengths: Durations of both contents in seconds.
        """
        if self.by == "picture" or first == second:
            return seen
        heard = self.score(first, second) or 0.0
        if self.by == "both" or seen.score >= heard:
            return replace(seen, score=score_by(self.by, seen.score, heard))
        found = self.found.get((first, second)) or self._compare(first, second)
        return seen if found is None else _to_pair_result(found, lengths)

    def results(
        self,
        seen: Mapping[ContentPair, PairResult],
        lengths: Mapping[str, float],
        is_allowed: Callable[[str, str], bool],
    ) -> dict[ContentPair, PairResult]:
        """Return the results of all pairs of contents that may belong together.

        Args:
            seen: Results by picture.
            lengths: Durations in seconds of all contents, keyed by content.
            is_allowed: Function that returns whether two contents may be compared.
        """
        pairs = dict(seen)
        if self.by in ("sound", "either"):  # add pairs that only share sound
            for first, second in self._find(lengths):
                if (second, first) not in seen and is_allowed(first, second):
                    pairs.setdefault((first, second), PairResult(0.0))
        return {
            (first, second): self.result(first, second, result, (lengths[first], lengths[second]))
            for (first, second), result in pairs.items()
        }

    def _find(self, contents: Collection[str]) -> list[ContentPair]:
        """Return pairs of these contents that may share sound; each content is looked up in the full table once."""
        assert self.sound is not None  # checked above
        met: dict[str, set[str]] = {content: {content} for content in contents}
        for content in sorted(set(contents) - self._looked_up):
            tracks = self._tracks(content)
            for other, score in self.sound.find(tracks, list(map(select_pieces, tracks)), skip=met[content]).items():
                if other in met and score.score >= UNRELATED:
                    met[other].add(content)
                    self.found[content, other] = score
                    self.known.sounds[" ".join(sorted((content, other)))] = score.score
        self._looked_up.update(contents)
        return list(self.found)

    def _tracks(self, content: str) -> Sequence[SoundFeatures]:
        assert self.sound is not None  # checked above
        return tracks_of(self.sound, content)

    def _compare(self, first: str, second: str) -> SoundScore | None:
        return best_of_tracks(self._tracks(first), self._tracks(second))


def tracks_of(sound: SoundSearch, content: str) -> Sequence[SoundFeatures]:
    """Return the audio tracks of a content; empty if they are damaged."""
    try:
        return sound.tracks(content) or ()
    except CollectionError as error:
        _warn_once(f"{error}; this sound is ignored")
        return ()


@cache
def _warn_once(message: str) -> None:
    _logger.warning("%s", message)


def select_pieces(track: SoundFeatures) -> SoundFeatures:
    """Select the part of a track to look up: pieces with a total of half a minute, spread over the track and without
    quiet passages.

    A part is sufficient, because a copy or an excerpt is completely contained in the other file.
    """
    if track.length <= _PIECES * _PIECE_SECONDS:
        return track
    count = int(track.length / _PIECE_SECONDS)
    pieces = [track.between(at * _PIECE_SECONDS, (at + 1) * _PIECE_SECONDS) for at in range(count)]
    loud = [piece for piece in pieces if len(piece) >= _MIN_PIECE_LANDMARKS] or pieces
    chosen = [loud[round(at)] for at in np.linspace(0, len(loud) - 1, _PIECES)]
    chosen = list({int(piece.times[0]): piece for piece in chosen if len(piece)}.values())
    if not chosen:
        return track
    columns = [np.concatenate([getattr(piece, name) for piece in chosen]) for name in ("times", "pitches", "strong")]
    return SoundFeatures(columns[0], columns[1], columns[2], track.length, track.language, track.is_default)


def _to_pair_result(score: SoundScore, lengths: tuple[float, float]) -> PairResult:
    """Convert a sound match to the result of a pair."""
    spans = (
        [(segment.query_start, segment.query_end) for segment in score.segments],
        [(segment.target_start, segment.target_end) for segment in score.segments],
    )
    first, second = (
        min(1.0, sum(end - start for start, end in of) / length) if length > 0 else 0.0
        for of, length in zip(spans, lengths, strict=True)
    )
    return PairResult(score.score, True, (first, second), score.segments)
