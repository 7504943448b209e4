"""Which file of a group to keep, and why."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.index.duplicates.comparisons import FileRecord, PairResult, content_of
from vidkin.index.duplicates.detail import (
    DetailSpectrum,
    Sketches,
    colorfulness,
    find_overlay,
    measure_detail,
    most_detailed,
)
from vidkin.index.duplicates.differences import Difference, only_lacks_borders
from vidkin.index.duplicates.pictures import SHOWS_MORE, Extent, Pictures, extent_of, read_pictures
from vidkin.similarity import SURE, WHOLE

_logger = logging.getLogger(__name__)

Known = MutableMapping[str, tuple[int, str]]
Compare = Callable[[FileRecord, FileRecord], PairResult]
Look = Callable[[FileRecord, FileRecord], Sequence[Difference]]

KEEP_RULES = ("best", "oldest", "newest", "largest", "smallest", "longest", "shortest", "picture")
"""Names of the rules. A folder is accepted as well: its files come first; after ``outside:`` those elsewhere do."""

KeepRules = str | Sequence[str]
"""One rule, or several: each decides between the files that those before it put first."""

_OUTSIDE = "outside:"
# Version of stored choices: raise it when the same files would get another keeper or reason.
_REVISION = 4
_MOMENTS = 6
# In groups of up to this many members all pairs are compared for the shared part of the picture.
_MOST_COMPARED = 12
# Groups of up to this many members have a number for the members whose picture is best.
_MOST_BITS = 60
# Share of the most files that any member allows to be removed which another one must allow to be compared with it.
_MANY = 0.5
# A picture that misses less than this share of a side spans it; and what covers less than this may have borders around.
_SLIGHT, _HALF = 0.02, 0.5
# Copies count as equally large unless one has at least this many times the pixels of the other.
_ABOUT = 1.15
_ABOUT_AS_FAR = 1.6
# A black and white copy has less than this share of the colorfulness of a copy in color.
_COLORLESS, _SOME_COLOR = 0.3, 6.0
# A copy must be longer by more than this to count as longer: of a short one by a share of its length, from 20 s on by a
# second, from 50 s on by a share again. Copies of any length differ by frames and sound at their ends.
_ENDS, _SHARE_OF_SHORT, _SECOND, _SHARE_OF_LONG = 0.2, 0.05, 1.0, 0.02
# Seconds by which the last frames of equally long copies may differ.
_EQUALLY_LONG = 0.1


def check_keep_rules(keep: KeepRules) -> tuple[str, ...]:
    """Check rules; returns them, folders as absolute paths.

    Raises:
        InvalidArgumentError: One is neither a rule nor a folder, or there is none.
    """
    rules = (keep,) if isinstance(keep, str) else tuple(keep)
    if not rules:
        raise InvalidArgumentError(f"keep must have at least one rule: {', '.join(KEEP_RULES)} or a folder")
    return tuple(map(_check_rule, rules))


def _check_rule(rule: str) -> str:
    if rule in KEEP_RULES:
        return rule
    outside = _OUTSIDE if rule.startswith(_OUTSIDE) else ""
    folder = os.path.abspath(os.path.expanduser(rule.removeprefix(outside)))
    if not os.path.isdir(folder):
        raise InvalidArgumentError(
            f"keep must be one of {', '.join(KEEP_RULES)} or a folder, also after {_OUTSIDE}, got {rule!r}"
        )
    return f"{outside}{folder}"


def choose_keeper(
    files: Sequence[FileRecord],
    keep: KeepRules,
    compare: Compare,
    known: Known | None = None,
    look: Look | None = None,
) -> tuple[FileRecord, str]:
    """Choose the file of a group to keep; returns it with the reason in a few words.

    ``best`` prefers the content with the most detail (bars, blurred borders and enlarged pixels do not count), then one
    without a logo or caption that others lack, then colors, no borders, the longest (up to 5 % of a short video, a
    second, or 2 % of a long one do not count), the highest bit rate at an equal codec, the oldest file. ``picture``
    puts first what ``best`` does up to and with its borders. ``largest`` has the most bytes, ``smallest`` the fewest.
    If a rule is a folder, its files come first; after ``outside:``, those elsewhere. Each rule chooses among the files
    that those before it put first; of several that are left, the best is chosen.

    Args:
        files: Two or more.
        keep: Rules checked by :func:`check_keep_rules`.
        compare: Result of a pair, for the moments that two files share.
        known: Receives the choices for which pictures were read, so that they are not read again for the same files:
            the place of the keeper among them and the reason.
        look: How one file differs from another. It is asked whether what one shows around the picture of others is only
            a border; without it, what looks like a picture counts as one.
    """
    known = {} if known is None else known
    rules = (keep,) if isinstance(keep, str) else tuple(keep)
    reasons: list[str] = []
    for rule in rules:
        if rule == "best":
            break
        first, because = _first_by(rule, files, compare, known, look)
        if first and (len(first) < len(files) or len(rules) == 1):
            files = first
            reasons += [because] if because else []
        if len(files) == 1:
            return files[0], ", ".join(reasons)
    keeper, reason = _best(files, compare, known, look)
    return keeper, ", ".join(dict.fromkeys([*reasons, reason]))


def is_better(
    files: Sequence[FileRecord],
    favored: Sequence[FileRecord],
    compare: Compare,
    known: Known,
    look: Look | None = None,
) -> tuple[FileRecord, str] | None:
    """A file with a better content than all of the favored ones, and why; None if there is none.

    Age, links and names do not make a file better.
    """
    if not favored or len(favored) == len(files):
        return None
    keeper, reason = _best(files, compare, known, look, favored)
    return None if keeper in favored else (keeper, reason)


def _first_by(
    rule: str, files: Sequence[FileRecord], compare: Compare, known: Known, look: Look | None
) -> tuple[list[FileRecord], str]:
    """The files that a rule other than ``best`` puts first, and the reason."""
    if rule == "picture":
        return _first_by_picture(files, compare, known, look)
    if rule in KEEP_RULES:
        keys: dict[str, Callable[[FileRecord], float]] = {
            "oldest": lambda file: file.record.mtime_ns,
            "newest": lambda file: -file.record.mtime_ns,
            "largest": lambda file: -file.record.size,
            "smallest": lambda file: file.record.size,
            "longest": lambda file: -file.record.duration,
            "shortest": lambda file: file.record.duration,
        }
        least = min(map(keys[rule], files)) + (_EQUALLY_LONG if rule in ("longest", "shortest") else 0)
        return [file for file in files if keys[rule](file) <= least], rule
    folder = rule.removeprefix(_OUTSIDE)
    inside = os.path.normcase(os.path.join(folder, ""))
    is_outside = rule.startswith(_OUTSIDE)
    first = [file for file in files if os.path.normcase(file.record.path).startswith(inside) != is_outside]
    return first, f"{'outside' if is_outside else 'in'} {folder}"


@dataclass(slots=True)
class _Candidate:
    """A file and what its pictures tell; they themselves are not held, as a group may have any number of files."""

    file: FileRecord
    pixels: int
    share: float
    spectrum: DetailSpectrum
    sketches: Sketches
    color: float

    @classmethod
    def of(cls, file: FileRecord, pictures: Pictures) -> _Candidate:
        images = pictures.images
        measured = measure_detail(images), Sketches.of(images), colorfulness(images)
        return cls(file, pictures.pixels, pictures.share, *measured)

    @property
    def id(self) -> int:
        return self.file.record.id


def _best(
    files: Sequence[FileRecord],
    compare: Compare,
    known: Known,
    look: Look | None,
    favored: Sequence[FileRecord] = (),
) -> tuple[FileRecord, str]:
    key = _identify(files)
    if favored:
        # The same files have another key for each choice among them.
        key += " favored" + "".join(f" {place}" for place, file in enumerate(files) if file in favored)
    place, reason = known.get(key, (-1, ""))
    if 0 <= place < len(files):
        return files[place], reason
    candidates = _candidates(files, compare)
    if len(candidates) == 1:
        return candidates[0].file, "the only one that can be read"
    if not candidates:
        records = sorted((file.record for file in favored or files), key=lambda record: record.path)
        first = max(records, key=lambda record: (record.width * record.height, record.duration, record.size))
        return next(file for file in files if file.record is first), "most pixels"
    chosen, reason = _choose(candidates, compare, look, favored)
    # A file that cannot be read now may be readable the next time.
    if len(candidates) == len(files):
        known[key] = files.index(chosen), reason
    return chosen, reason


def _first_by_picture(
    files: Sequence[FileRecord], compare: Compare, known: Known, look: Look | None
) -> tuple[list[FileRecord], str]:
    """The files that show the best picture, and why the others do not; files that cannot be read do not."""
    key = f"{_identify(files)} picture"
    places, reason = known.get(key, (0, ""))
    if not 0 < places < 1 << len(files):
        candidates = _candidates(files, compare)
        if len(candidates) < 2:
            return [one.file for one in candidates], "the only one that can be read"
        choice = _Choice(candidates)
        _compare_pictures(choice, compare, look)
        chosen = [one.file for one in choice.candidates]
        # One bit for each file: several may be equal.
        places = sum(1 << place for place, file in enumerate(files) if file in chosen)
        reason = choice.reasons[-1] if choice.reasons else ""
        if len(candidates) == len(files) <= _MOST_BITS:
            known[key] = places, reason
    return [file for place, file in enumerate(files) if places >> place & 1], reason


def _identify(files: Sequence[FileRecord]) -> str:
    """Identifies the files of a choice as they are now. Not the results of their pairs: those that are read more finely
    later, as members of the group, show the same, and a choice by them would read all pictures again."""
    facts: list[object] = [_REVISION]
    for file in files:
        record = file.record
        try:
            status = os.stat(record.path)
            now = [status.st_size, status.st_mtime_ns]
        except OSError:
            now = []
        shape = [record.width, record.height, record.duration, record.codec]
        facts.append([content_of(record), record.path, record.size, record.mtime_ns, now, *shape, len(file.links)])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _reference(files: Sequence[FileRecord]) -> FileRecord:
    """The file whose moments are looked up in the others."""
    return max(files, key=lambda file: (file.record.width * file.record.height, file.record.duration))


@dataclass(slots=True)
class _Choice:
    """Files that are still in question, and why others are not."""

    candidates: list[_Candidate]
    reasons: list[str] = field(default_factory=list)

    def keep(self, fewer: list[_Candidate], reason: str) -> None:
        """Go on with these, unless they are all or none."""
        if fewer and len(fewer) < len(self.candidates):
            self.candidates = fewer
            self.reasons.append(reason)


def _choose(
    candidates: list[_Candidate],
    compare: Compare,
    look: Look | None,
    favored: Sequence[FileRecord],
) -> tuple[FileRecord, str]:
    choice = _Choice(candidates)
    _compare_pictures(choice, compare, look)
    longest = max(one.file.record.duration for one in choice.candidates)
    allowed = longest - max(_ENDS, min(_SECOND, _SHARE_OF_SHORT * longest), _SHARE_OF_LONG * longest)
    choice.keep([one for one in choice.candidates if one.file.record.duration >= allowed], "longest")
    if len({one.file.record.codec for one in choice.candidates}) == 1:
        most = max(_bit_rate(one.file) for one in choice.candidates)
        choice.keep([one for one in choice.candidates if _bit_rate(one.file) >= 0.98 * most], "highest bit rate")
    choice.keep([one for one in choice.candidates if one.file in favored], "in the library")
    oldest = min(one.file.record.mtime_ns for one in choice.candidates)
    choice.keep([one for one in choice.candidates if one.file.record.mtime_ns == oldest], "oldest")
    # The other names of a file keep its bytes on the disk.
    names = max(len(one.file.links) for one in choice.candidates)
    choice.keep([one for one in choice.candidates if len(one.file.links) == names], "has hard links")
    chosen = min(choice.candidates, key=lambda one: one.file.record.path)
    return chosen.file, choice.reasons[-1] if choice.reasons else "first by name"


def _compare_pictures(choice: _Choice, compare: Compare, look: Look | None) -> None:
    """Go on with the files that show the most of the picture, and show it best."""
    candidates = choice.candidates
    if len(candidates) <= _MOST_COMPARED:
        extents = _shared_extents(candidates, compare)
        while look is not None and _finds_border(candidates, extents, compare, look):
            extents = _shared_extents(candidates, compare)
        choice.keep(_sparing(candidates, extents), "whole picture")
        candidates = choice.candidates
        # The film itself is sharper than a picture that shows it only in a part.
        ids = {one.id for one in candidates}
        small = {one for (one, other), extent in extents.items() if other in ids and extent.is_small_part}
        choice.keep([one for one in candidates if one.id not in small], "sharpest")
        candidates = choice.candidates

    best, reaches = most_detailed([one.spectrum for one in candidates])
    # Those with about the pixels of the most detailed one and about its detail: neither enlarged nor blurred.
    pixels, reach = candidates[best].pixels, reaches[best]
    choice.keep(
        [
            one
            for one, far in zip(candidates, reaches, strict=True)
            if pixels / _ABOUT <= one.pixels <= pixels * _ABOUT and far * _ABOUT_AS_FAR >= reach
        ],
        "most detail",
    )
    candidates = choice.candidates
    # Copies whose picture most others show, too, without an overlay.
    plain = []
    for one in candidates:
        others = [other for other in candidates if other is not one]
        laid = [find_overlay(one.sketches, other.sketches) == "first" for other in others]
        if 2 * sum(laid) <= len(laid):
            plain.append(one)
    choice.keep(plain, "no logo or caption")
    candidates = choice.candidates
    most = max(one.color for one in candidates)
    if most >= _SOME_COLOR:
        choice.keep([one for one in candidates if one.color >= _COLORLESS * most], "in color")
    widest = max(one.share for one in choice.candidates)
    choice.keep([one for one in choice.candidates if one.share >= 0.95 * widest], "no borders")


def _sparing(candidates: Sequence[_Candidate], extents: Mapping[tuple[int, int], Extent]) -> list[_Candidate]:
    """Files for which the fewest others must stay: the uncropped film rather than crops or a split screen.

    Only what is known of a pair speaks for or against a file: of two equal ones, one may have been compared with a
    mirrored copy as it is and the other flipped. Files of which few others are known to be copies as they are, such as
    that one, are left out.
    """
    spare = Counter(kept for (_, kept), extent in extents.items() if not extent.missing)
    lost = Counter(kept for (_, kept), extent in extents.items() if extent.missing)
    enough = max(spare.values(), default=0) * _MANY
    known = [one for one in candidates if spare[one.id] >= enough]
    fewest = min(lost[one.id] for one in known)
    return [one for one in known if lost[one.id] == fewest]


def _finds_border(
    candidates: Sequence[_Candidate], extents: Mapping[tuple[int, int], Extent], compare: Compare, look: Look
) -> bool:
    """Whether a file that seems to show the most only has a border, which is not counted as its picture from then on.

    A border that is but lightly blurred passes for a picture when it is looked at alone. Laid on another copy, which
    has to be done for the words about that one anyway, it shows where the picture ends.
    """
    first = _sparing(candidates, extents)
    one, ids = max(first, key=lambda each: each.file.record.size), {each.id for each in first}
    smaller = [
        other
        for other in candidates
        if other.id not in ids
        and (one.id, other.id) in extents
        and extents[one.id, other.id].missing == SHOWS_MORE
        and _may_be_bordered(compare(one.file, other.file))
    ]
    if not smaller:
        return False
    other = max(smaller, key=lambda each: each.file.record.size)
    differences = look(other.file, one.file)
    if not only_lacks_borders(differences):
        return False
    border = next(each.amount for each in differences if each.kind == "borders removed")
    inside = min(1.0 - (border or 0.0), extents[one.id, other.id].first)
    one.share, one.pixels = one.share * inside, max(1, round(one.pixels * inside))
    return True


def _may_be_bordered(result: PairResult) -> bool:
    """Whether the part of the first picture that the second shows lies as within borders: over its whole width or
    height, or over less than half of it. Most crops do not, and nothing is read for them."""
    left, top, right, bottom = result.segments[0].query_box if result.segments else WHOLE
    return max(right - left, bottom - top) > 1.0 - _SLIGHT or (right - left) * (bottom - top) < _HALF


def _shared_extents(candidates: Sequence[_Candidate], compare: Compare) -> dict[tuple[int, int], Extent]:
    """Shared extent of each pair of files, by their ids; pairs that share nothing are left out."""
    extents = {}
    for one, other in permutations(candidates, 2):
        result = compare(one.file, other.file)
        # A flipped or turned copy was compared with one of the others only, which must not speak for that one; nor must
        # what two of them that are not copies as they are have in common.
        if result.is_upright and (result.score >= 1 or (result.segments and result.score >= SURE)):
            ids = one.id, other.id
            extents[ids] = extent_of(result, one, other)
    return extents


def _candidates(files: Sequence[FileRecord], compare: Compare) -> list[_Candidate]:
    """Readable files with their pictures at moments that they share with the first one."""
    reference = _reference(files)
    results = {file.record.id: compare(file, reference) for file in files if file is not reference}
    # Seconds of the reference that the others show as well, if there is such a stretch.
    start, end = 0.0, reference.record.duration
    for shared in results.values():
        if shared.segments:
            first = min(segment.target_start for segment in shared.segments)
            last = max(segment.target_end for segment in shared.segments)
            if max(start, first) < min(end, last):
                start, end = max(start, first), min(end, last)
    steps = (np.arange(_MOMENTS) + 0.5) / _MOMENTS
    moments = [float(start + step * (end - start)) for step in steps]
    candidates: list[_Candidate] = []
    for file in files:
        twin = next((one for one in candidates if content_of(one.file.record) == content_of(file.record)), None)
        if twin is not None:
            candidates.append(replace(twin, file=file))
            continue
        result = results.get(file.record.id)
        times = moments if result is None else [_moment(result, file, reference, time) for time in moments]
        try:
            pose = {} if result is None else {"mirrored": result.mirrored, "turned": result.turned}
            candidate = _Candidate.of(file, read_pictures(file.record.path, times, **pose))  # type: ignore[arg-type]
        except MediaError as error:
            _logger.warning("%s; it is not chosen as the best copy", error)
            continue
        candidates.append(candidate)
    return candidates


def _moment(result: PairResult, file: FileRecord, reference: FileRecord, time: float) -> float:
    """Time in a file that shows what the reference shows at ``time``, seconds."""
    for segment in result.segments:
        if segment.target_start <= time <= segment.target_end:
            return min(segment.query_start + (time - segment.target_start) / segment.speed, segment.query_end)
    share = time / reference.record.duration if reference.record.duration > 0 else 0.0
    return share * file.record.duration


def _bit_rate(file: FileRecord) -> float:
    return file.record.size / max(file.record.duration, 1e-3)
