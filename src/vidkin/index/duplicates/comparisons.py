"""Results for pairs and groups, saved in the index folder so that no pair is compared twice; and the indexed files that
exist on disk."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import permutations
from typing import Any

from vidkin._base.arguments import check_constructor
from vidkin._base.values import LONG_JSON_LIMITS, parse_json
from vidkin.errors import CollectionError, InvalidArgumentError
from vidkin.files.proof_record import PROOF_REVISION, Proof
from vidkin.index.duplicates.traits import Traits
from vidkin.index.storage.files import write_atomically
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.similarity import UNRELATED, Box, Segment

_logger = logging.getLogger(__name__)

# Minimum seconds between writes; at most this much work is lost if the process is killed.
_PAUSE = 20.0
# Maximum fraction of the time spent on writes, which take long for many videos.
_MAX_SAVING_RATIO = 0.02

# Increment when the meaning of stored values changes. This is not necessary if scores or proofs change, because these
# have their own revisions (`vidkin.similarity.contracts.SCORE_REVISION`, `PROOF_REVISION`).
_REVISION = 5


@check_constructor
@dataclass(frozen=True, slots=True)
class PairResult:
    """Result of comparing two videos.

    Attributes:
        score: Score in [0, 1].
        fine: Whether both videos were sampled as densely as queries; otherwise, stored features were compared.
        covered: Fraction of the first video's informative frames that the second shows, and vice versa.
        segments: Matching segments, with the first video as the query.
    """

    score: float
    fine: bool = False
    covered: tuple[float, float] = (0.0, 0.0)
    segments: tuple[Segment, ...] = ()

    def __post_init__(self) -> None:
        if not all(0.0 <= value <= 1.0 for value in (self.score, *self.covered)):
            raise InvalidArgumentError(f"score and covered must be in [0, 1], got {self.score} and {self.covered}")

    @property
    def mirrored(self) -> bool:
        """Whether one of the videos is flipped left to right."""
        return bool(self.segments) and self.segments[0].mirrored

    @property
    def turned(self) -> int:
        """Clockwise rotation of the first video in degrees that matches the second: 0, 90, 180 or 270."""
        return self.segments[0].turned if self.segments else 0

    def swapped(self) -> PairResult:
        """Return the same result with the second video as the query."""
        return replace(
            self,
            covered=self.covered[::-1],
            segments=tuple(segment.swapped() for segment in self.segments),
        )


Relation = str
"""``whole``: both videos match from start to end; ``excerpt``: the first is part of the second; ``contains``: the
second is part of the first; ``overlaps``: they share a segment."""

# Minimum fraction of a video's informative frames that must match for it to count as a whole; its ends may be trimmed.
WHOLE = 0.7


def relation_of(result: PairResult, lengths: tuple[float, float] = (0.0, 0.0)) -> Relation:
    """Return the relation of the first video of a pair to the second.

    Args:
        result: Result of the comparison.
        lengths: Durations of both videos in seconds, 0 if unknown. All of a nearly still video may match half of it, so
            a whole copy must also have about the same duration.
    """
    first, second = (fraction >= WHOLE for fraction in result.covered)
    if min(lengths) > 0:
        speed = max(result.segments, key=lambda item: item.query_end - item.query_start).speed if result.segments else 1
        own, other = lengths[0] * speed, lengths[1]
        first, second = first and other >= WHOLE * own, second and own >= WHOLE * other
    if first and second:
        return "whole"
    return "excerpt" if first else "contains" if second else "overlaps"


def min_missing_seconds(duration: float) -> float:
    """Return how many seconds must be missing from a video of this duration to matter: 5 %, but at least 1 and at most
    10 seconds."""
    return max(1.0, min(10.0, 0.05 * duration))


def matched_span(relation: Relation, result: PairResult) -> tuple[float | None, float | None]:
    """Return start and end of the part of the longer file that the shorter one shows; None if both match as a whole."""
    if relation == "whole" or not result.segments:
        return None, None
    if relation == "excerpt":
        spans = [(segment.target_start, segment.target_end) for segment in result.segments]
    else:
        spans = [(segment.query_start, segment.query_end) for segment in result.segments]
    return min(start for start, _ in spans), max(end for _, end in spans)


@dataclass(slots=True)
class Comparisons:
    """Results for pairs of contents; a content is identified by the hash of its bytes.

    Attributes:
        place: Location of the index; None to save nothing.
        state: Identifies what the results depend on apart from the two files. Results with a different state are
            discarded.
        searched: Contents already compared with all neighbors that may be whole copies.
        traits: Frame rate, audio tracks, date and similar properties of each content that was opened.
        searched_parts: Contents already compared with all neighbors that may share a segment.
        scoped: Contents that were looked up only within a scope, see :class:`vidkin.index.duplicates.scope.Lookups`.
        differences: Differences between two contents of a group, keyed by pair, as dictionaries of their fields; see
            :func:`vidkin.index.duplicates.differences.find_differences`.
        sounds: Sound scores, keyed by pair of contents.
        file: Name of the file in the index.
    """

    FILE = "comparisons.json"
    # Results of files without their ends, which would otherwise take the place of the results of whole files.
    FILE_WITHOUT_ENDS = "comparisons-without-ends.json"

    place: Place | None = None
    state: str = ""
    searched: set[str] = field(default_factory=set)
    traits: dict[str, Traits] = field(default_factory=dict)
    searched_parts: set[str] = field(default_factory=set)
    scoped: dict[str, set[str]] = field(default_factory=dict)
    differences: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sounds: dict[str, float] = field(default_factory=dict)
    _proofs: dict[tuple[str, str], Proof] = field(default_factory=dict)
    _pairs: dict[tuple[str, str], PairResult] = field(default_factory=dict)
    file: str = FILE
    _written: float = field(default_factory=time.monotonic)
    # Duration of the last write in seconds.
    _seconds: float = 0.0

    def get(self, first: str, second: str) -> PairResult | None:
        """Return the result of a pair, with the first content as the query; None if it was not compared."""
        result = self._pairs.get(_key(first, second))
        return result.swapped() if result is not None and second < first else result

    def put(self, first: str, second: str, result: PairResult) -> None:
        """Add a result; segments of unrelated pairs are dropped."""
        if result.score < UNRELATED:
            result = replace(result, segments=())
        self._pairs[_key(first, second)] = result.swapped() if second < first else result

    def proof(self, kept: str, removed: str) -> Proof | None:
        """Return the proof from decoding two contents; None if there is none, or only one from an earlier method."""
        return self._proofs.get((kept, removed))

    def put_proof(self, kept: str, removed: str, proof: Proof) -> None:
        """Add a proof, unless a file could not be read, because it may be readable next time."""
        if all(finding.kind != "unreadable" for finding in proof.findings):
            self._proofs[kept, removed] = proof

    def part(self, contents: Iterable[str]) -> Comparisons:
        """Return the results for some contents and their pairs, in memory only."""
        part, chosen = Comparisons(None, self.state), sorted(set(contents))
        part.traits = {content: self.traits[content] for content in chosen if content in self.traits}
        pairs = list(permutations(chosen, 2))
        keys = [" ".join(pair) for pair in pairs]
        part._pairs = {pair: self._pairs[pair] for pair in pairs if pair in self._pairs}
        part._proofs = {pair: self._proofs[pair] for pair in pairs if pair in self._proofs}
        part.differences = {key: self.differences[key] for key in keys if key in self.differences}
        part.sounds = {key: self.sounds[key] for key in keys if key in self.sounds}
        return part

    def merge(self, part: Comparisons) -> None:
        """Add the results from a part."""
        self._pairs |= part._pairs
        self.traits |= part.traits
        self._proofs |= part._proofs
        self.differences |= part.differences
        self.sounds |= part.sounds

    def pairs(self) -> Iterator[tuple[str, str, PairResult]]:
        """Yield all pairs with their results, sorted by content."""
        for first, second in sorted(self._pairs):
            yield first, second, self._pairs[first, second]

    @classmethod
    def open(cls, place: Place, state: str, file: str = FILE) -> Comparisons:
        """Load the results of an index; empty if they have a different state or cannot be read."""
        empty = cls(place, state, file=file)
        try:
            content = place.read(file)
            if content is None:
                return empty
            table = parse_json(content, LONG_JSON_LIMITS)
            if table["state"] != state or table.get("revision") != _REVISION:
                return empty
            names: list[str] = [str(name) for name in table["contents"]]
            return cls(
                place,
                state,
                {names[at] for at in table["searched"]},
                {str(key): Traits.from_dict(found) for key, found in table["traits"].items()},
                {names[at] for at in table["searched_parts"]},
                {str(key): {names[at] for at in found} for key, found in table["scoped"].items()},
                {str(key): list(found) for key, found in table["differences"].items()},
                _sounds(table["sounds"]),
                _proofs(table["proofs"]),
                {(names[row[0]], names[row[1]]): _result(row) for row in table["pairs"]},
                file,
            )
        except (OSError, CollectionError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            _logger.info("%s: %s; comparing all pairs again", place.address(file), error)
            return empty

    def save_if_due(self) -> None:
        """Call :meth:`save` unless it was called recently."""
        if time.monotonic() - self._written >= max(_PAUSE, self._seconds / _MAX_SAVING_RATIO):
            self.save()

    def save(self) -> None:
        """Save the results, atomically; failures are only logged, because the pairs can be compared again."""
        if self.place is None:
            return
        begun = time.monotonic()
        compared = {name for pair in self._pairs for name in pair}
        looked_up = self.searched, self.searched_parts, *self.scoped.values()
        names = sorted(compared.union(*looked_up))
        if not (names or self.traits or self.sounds or self.place.has_file(self.file)):
            return  # a caller that only read has nothing to save, and may lack write permission
        positions = {name: position for position, name in enumerate(names)}
        table = {
            "state": self.state,
            "revision": _REVISION,
            "contents": names,
            "searched": sorted(positions[name] for name in self.searched),
            "searched_parts": sorted(positions[name] for name in self.searched_parts),
            "traits": {content: traits.to_dict() for content, traits in self.traits.items()},
            "proofs": [[*pair, proof.to_dict()] for pair, proof in self._proofs.items()],
            "scoped": {key: sorted(positions[name] for name in found) for key, found in self.scoped.items()},
            "differences": self.differences,
            "sounds": {"made": _sound_fingerprint(), "pairs": self.sounds},
            "pairs": [
                [
                    *(positions[first], positions[second], result.score, result.fine, result.covered),
                    [astuple(segment) for segment in result.segments],
                ]
                for first, second, result in self.pairs()
            ],
        }
        try:
            write_atomically(self.place, self.file, json.dumps(table, separators=(",", ":")).encode())
        except CollectionError as error:
            _logger.info("%s", error)
        self._written = time.monotonic()
        self._seconds = self._written - begun


def _proofs(rows: list[Any]) -> dict[tuple[str, str], Proof]:
    found = {(str(kept), str(removed)): Proof.from_dict(table) for kept, removed, table in rows}
    return {pair: proof for pair, proof in found.items() if proof.revision == PROOF_REVISION}


def _key(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _sound_fingerprint() -> str:
    # Imported late because it loads decoders, which callers that only read records do not need.
    from vidkin.index.storage.sound_files import fingerprint_of_sounds

    return fingerprint_of_sounds()


def _sounds(table: Mapping[str, Any]) -> dict[str, float]:
    """Parse stored sound scores; empty if they come from a different version of the fingerprints."""
    if table.get("made") != _sound_fingerprint():
        return {}
    return {str(key): float(score) for key, score in table["pairs"].items()}


def _result(row: list[Any]) -> PairResult:
    _, _, score, fine, covered, segments = row
    coverage = float(covered[0]), float(covered[1])
    return PairResult(float(score), bool(fine), coverage, tuple(map(_segment, segments)))


def _segment(values: list[Any]) -> Segment:
    start, end, other_start, other_end, score, speed, mirrored, query_box, target_box, turned, backwards = values
    times = float(start), float(end), float(other_start), float(other_end)
    boxes = _box(query_box), _box(target_box)
    return Segment(*times, float(score), float(speed), bool(mirrored), *boxes, int(turned), bool(backwards))


def _box(values: list[Any]) -> Box:
    left, top, right, bottom = values
    return float(left), float(top), float(right), float(bottom)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """An indexed file with all its names.

    Attributes:
        record: Record of the file under its first name.
        links: Other names of the same file in the index.
    """

    record: VideoRecord
    links: tuple[str, ...] = ()


def content_of(record: VideoRecord) -> str:
    """Identifier of the content of a file; byte-identical files share it."""
    return record.content_hash or f"video {record.id}"


def present_files(records: Iterable[VideoRecord]) -> list[FileRecord]:
    """Return the existing files with features, without duplicates; log a warning about missing files.

    Hard and symbolic links are additional names of a file, not copies; symbolic links come last.
    """
    names: dict[tuple[int, int], list[VideoRecord]] = {}
    gone = []
    for record in records:
        if record.status != "ok" or record.frames == 0:
            continue
        try:
            status = os.stat(record.path)
        except OSError:
            gone.append(record.path)
            continue
        names.setdefault((status.st_dev, status.st_ino), []).append(record)
    if gone:
        _logger.warning(
            "%d videos are left out because their files are gone, for example %s (`vidkin index PATH... --prune` "
            "removes them from the index)",
            len(gone),
            gone[0],
        )
    files = []
    for same in names.values():
        first, *others = sorted(same, key=lambda record: (os.path.islink(record.path), record.path))
        files.append(FileRecord(first, tuple(record.path for record in others)))
    return sorted(files, key=lambda file: file.record.path)
