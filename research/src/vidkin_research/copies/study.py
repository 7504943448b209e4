"""Run the copy-retrieval study end to end: edit, index, search, and compare with the ground truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.figures import THRESHOLD, CopyFigures, summarize_copies, summarize_sound_rules
from vidkin_research.copies.material import SOUND, CopyMaterial, make_copies
from vidkin_research.copies.peers import PEERS
from vidkin_research.copies.recordings import FULL, ClipSize, Recording
from vidkin_research.copies.scores import CopyPeer, PairScores, search_scores

OnStudyProgress = Callable[[int, int, str], None]

"""Called with the steps done, the total number of steps (0 if unknown), and the current step."""


@dataclass(frozen=True, slots=True)
class ExtractorChoice:
    """An extractor to measure.

    Attributes:
        name: Name as for `vidkin index --extractor`; None for the default.
        weights: File with the extractor's weights.
        whitening: File with the extractor's whitening.
    """

    name: str | None = None
    weights: Path | None = None
    whitening: Path | None = None


@dataclass(frozen=True, kw_only=True)
class CopyStudy:
    """Settings of the study.

    Attributes:
        size: Number and size of the queries.
        edits: Names in `vidkin_research.copies.edits.EDITS`.
        sound_edits: Names in `vidkin_research.copies.sound_edits.SOUND_EDITS`, for recordings with sound.
        extractors: Extractors to compare on the same copies.
        peers: Whether to also measure `PEERS`.
        threshold: Minimum score at which a copy counts as found.
        threads: Number of copies made at the same time.
    """

    size: ClipSize = FULL
    edits: tuple[str, ...] = tuple(EDITS)
    sound_edits: tuple[str, ...] = ()
    extractors: tuple[ExtractorChoice, ...] = (ExtractorChoice(),)
    peers: bool = False
    threshold: float = THRESHOLD
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class CopyReport:
    """Metrics of all systems.

    Attributes:
        machine: Description of the machine.
        study: Settings of the study.
        queries: Number of queries.
        videos: Number of videos searched.
        minutes: Wall-clock time in minutes.
        figures: Metrics of each system.
        notes: Notes on what was left out.
        witnesses: Metrics of the first extractor on the queries with sound, scored by frames, by sound, by either and
            by both, over frame and sound copies together; empty without sound.
    """

    machine: str
    study: CopyStudy
    queries: int
    videos: int
    minutes: float
    figures: tuple[CopyFigures, ...]
    notes: tuple[str, ...] = ()
    witnesses: tuple[CopyFigures, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CopyResults:
    """A report, and the data that a page with images also needs.

    Attributes:
        report: The report.
        material: Queries and gallery.
        scores: Scores by system name.
    """

    report: CopyReport
    material: CopyMaterial
    scores: dict[str, PairScores] = field(default_factory=dict)


def choose_extractors(
    names: Sequence[str], *, weights: Path | None = None, whitening: Path | None = None
) -> tuple[ExtractorChoice, ...]:
    """Return the named extractors (``"default"`` or no name for the default one); these files apply to the last one."""
    choices = [ExtractorChoice(None if name == "default" else name) for name in names or ["default"]]
    choices[-1] = replace(choices[-1], weights=weights, whitening=whitening)
    return tuple(choices)


def run_copy_study(
    study: CopyStudy,
    recordings: Sequence[Recording],
    work: Path,
    *,
    distractors: Iterable[Recording] = (),
    machine: str = "",
    on_progress: OnStudyProgress | None = None,
) -> CopyResults:
    """Make the copies, search for them with every system, and compare the results.

    Args:
        study: Settings of the study.
        recordings: See `make_copies`.
        work: Folder for the copies and indexes. Copies from an earlier run are reused.
        distractors: See `make_copies`.
        machine: Description of this machine for the report.
        on_progress: Callback that receives the steps done, the total number of steps of this part, and the current
            step.

    Raises:
        InvalidArgumentError: No recording is long enough.
        MediaError: A video cannot be read.
        MissingPartError: A peer is not installed.
    """
    started = time.perf_counter()
    peers = PEERS if study.peers else ()
    report_step = on_progress or (lambda done, total, what: None)
    material = make_copies(
        recordings,
        work,
        study.size,
        edits=study.edits,
        sound_edits=study.sound_edits,
        distractors=distractors,
        threads=study.threads,
        on_progress=lambda done, total, name: report_step(done, total, f"edit {name}"),
    )
    scores = {name: measure() for name, measure in _systems(study, peers, material, work, report_step)}
    witnesses: tuple[CopyFigures, ...] = ()
    for found in scores.values():
        witnesses = witnesses or summarize_sound_rules(found, material, threshold=study.threshold)
    # Sound-only copies do not share frames, so they are reported separately.
    seen = np.array([video.edit_family != SOUND for video in material.gallery])
    if not seen.all():
        pictures = tuple(video for video, is_seen in zip(material.gallery, seen, strict=True) if is_seen)
        material = CopyMaterial(material.queries, pictures)
        scores = {name: found.only(seen) for name, found in scores.items()}
    figures = tuple(
        summarize_copies(name, pair_scores, material, threshold=study.threshold) for name, pair_scores in scores.items()
    )
    report = CopyReport(
        machine=machine,
        study=study,
        queries=len(material.queries),
        videos=len(material.gallery),
        minutes=(time.perf_counter() - started) / 60,
        figures=figures,
        notes=tuple(peer.missing for peer in peers if peer.missing),
        witnesses=witnesses,
    )
    return CopyResults(report=report, material=material, scores=scores)


def _systems(
    study: CopyStudy,
    peers: Sequence[CopyPeer],
    material: CopyMaterial,
    work: Path,
    report_step: OnStudyProgress,
) -> Iterator[tuple[str, Callable[[], PairScores]]]:
    """Yield the name of each system, and the function that measures it."""
    for choice in study.extractors:
        name = "vidkin" if choice.name is None else f"vidkin {choice.name.partition('?')[0]}"
        folder = work / "indexes" / f"{name.replace(' ', '-').replace(':', '-').replace('/', '-')}.vidkin"

        def measure(choice: ExtractorChoice = choice, folder: Path = folder, name: str = name) -> PairScores:
            return search_scores(
                material,
                folder,
                extractor=choice.name,
                weights=choice.weights,
                whitening=choice.whitening,
                on_progress=lambda done, total, file: report_step(done, total, f"{name}: {file}"),
            )

        yield name, measure
    for peer in peers:
        if not peer.missing:
            yield peer.name, partial(peer.measure, material)
