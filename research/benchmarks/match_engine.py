"""The engine of matches next to the mean of best without any rule, on copies of one half of the sources.

    python research/benchmarks/match_engine.py --data DATA --half development --work FOLDER --pictures FOLDER
        --network NAME=FILE@SIDE... --verifier NAME=FILE... [--copies FOLDER] [--product] [--output FILE]

Each network gives one vector a frame, at one and at two frames a second. Copies are those that the frame encoder is
measured on; unrelated videos are searched among them. ``--verifier`` names the network that a verifier was trained on;
a network without a verifier of its own is measured with all of them. Strangers are unrelated videos and drawn pages
that search for each other and among all copies; other moments are stretches of one recording, one stretch apart.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vidkin.match import Edge, EdgeSegment, Engine, MatchQuery, Sequenced, Verifier, read_verifier
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.figures import CopyFigures, summarize_copies
from vidkin_research.copies.material import DISTRACTOR, CopyMaterial
from vidkin_research.copies.places import place_segments
from vidkin_research.copies.scores import PairScores, search_scores
from vidkin_research.frame_encoder.drawn import draw_page
from vidkin_research.frame_encoder.raw_vectors import VectorStore, mean_of_best, parse_network
from vidkin_research.verifier.frames import FrameSource, read_cohort
from vidkin_research.verifier.material import make_material
from vidkin_research.verifier.pairs import to_gallery
from vidkin_research.verifier.stills import hold

# Videos of the gallery that are compared, at most.
_CANDIDATES = 100
# Unrelated videos that search, and drawn pages that search and are searched, each for as many seconds.
_SEARCHING, _PAGES, _PAGE_SECONDS = 25, 25, 3.0
# Seconds of a stretch of a recording, and of the whole of it that is used.
_STRETCH, _LONGEST = 4.0, 40.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the measurement data")
    parser.add_argument("--half", choices=("development", "held-back"), default="development")
    parser.add_argument("--work", type=Path, required=True, help="folder for vectors, outside of the tree")
    parser.add_argument("--copies", type=Path, help="folder of the copies; default: in the work folder")
    parser.add_argument("--pictures", type=Path, required=True, help="work folder of the frame encoder, for the cohort")
    parser.add_argument("--network", action="append", required=True, metavar="NAME=FILE@SIDE", help="repeatable")
    parser.add_argument("--verifier", action="append", required=True, metavar="NAME=FILE", help="repeatable")
    parser.add_argument("--rates", type=float, nargs="+", choices=(1.0, 2.0), default=[1.0, 2.0])
    parser.add_argument("--product", action="store_true", help="measure the index as it is today in the same run")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    given = parser.parse_args()
    material = make_material(given.data, given.half, given.copies or given.work / given.half)
    verifiers = {name: read_verifier(Path(file)) for name, _, file in (each.partition("=") for each in given.verifier)}
    figures: dict[str, Any] = {
        "machine": describe_machine(),
        "half": given.half,
        "queries": len(material.queries),
        "gallery": len(material.gallery),
        "copies": sum(video.source is not None for video in material.gallery),
        "networks": {},
    }
    for network in map(parse_network, given.network):
        stored = max(given.rates)
        store = VectorStore(network, given.work / "vectors", rate=stored, short_side=network.side)
        cohort = read_cohort(given.pictures, given.work, store)
        rows = figures["networks"][network.name] = {"file": network.key()}
        for rate in given.rates:
            source = FrameSource(store, cohort, step=round(stored / rate))
            own = {network.name: verifiers[network.name]} if network.name in verifiers else verifiers
            rows[f"{rate:g} a second"] = measure_network(source, store, cohort, material, own, rate)
            show(f"{network.name}, {rate:g} a second", rows[f"{rate:g} a second"])
    if given.product:
        figures["vidkin today"] = measure_product(material)
        show("today", {"vidkin": figures["vidkin today"]})
    if given.output:
        given.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure_network(
    source: FrameSource,
    store: VectorStore,
    cohort: np.ndarray,
    material: CopyMaterial,
    verifiers: dict[str, Verifier],
    rate: float,
) -> dict[str, Any]:
    """The mean of best, and the engine with each verifier."""
    queries = [source(query.path) for query in material.queries]
    videos = [source(video.path) for video in material.gallery]
    raw = np.array([[mean_of_best(query.vectors, video.vectors) for video, *_ in videos] for query, *_ in queries])
    rows: dict[str, Any] = {"mean of best": describe(summarize_copies("raw", PairScores(raw), material))}
    gallery = to_gallery(videos)
    drawn = store.encode([draw_page(np.random.default_rng([7, number])) for number in range(_PAGES)])
    pages = [(hold(vector, _PAGE_SECONDS, rate, cohort),) for vector in drawn]
    stretches = cut_stretches(source, material)
    for name, verifier in verifiers.items():
        engine = Engine(verifier, candidates=_CANDIDATES)
        started = time.process_time()
        edges = list(engine.match([MatchQuery(whole, parts) for whole, *parts in queries], gallery))
        spent = 1000 * (time.process_time() - started) / len(queries)
        found = to_scores(edges, material)
        rows[f"engine, verifier of {name}"] = {
            **describe(summarize_copies(name, found, material)),
            "milliseconds a query": round(spent, 1),
            "speed": describe_speeds(found, material),
            "strangers": count_strangers(engine, source, material, pages),
            "other moments": count_moments(engine, videos, stretches),
        }
    return rows


def measure_product(material: CopyMaterial) -> dict[str, Any]:
    """The same figures of the index as it is today."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        scores = search_scores(material, Path(folder) / "today.vidkin")
        spent = time.process_time() - started
    assert scores.costs is not None
    return {
        **describe(summarize_copies("vidkin", scores, material)),
        "seconds of search": round(scores.costs.search_seconds, 2),
        "seconds of processor time": round(spent),
    }


def to_scores(edges: Sequence[Edge], material: CopyMaterial) -> PairScores:
    """Edges as a table; 0 where there is none."""
    shape = len(material.queries), len(material.gallery)
    scores = np.zeros(shape)
    segments: list[list[tuple[EdgeSegment, ...]]] = [[() for _ in material.gallery] for _ in material.queries]
    for edge in edges:
        scores[edge.a, edge.b] = edge.score
        segments[edge.a][edge.b] = edge.segments
    return PairScores(scores, segments)


def describe(figures: CopyFigures) -> dict[str, Any]:
    """mAP and micro-AP of all copies and of each family; how many score .2 or more; errors of ends."""
    everything = figures.everything
    row: dict[str, Any] = {
        "map": round(everything.strict.map, 4),
        "micro_ap": round(everything.strict.micro_ap, 4),
        "copies": everything.copies,
        "copies at .2": everything.reported,
        "families": {
            group.name: [round(group.strict.map, 3), round(group.strict.micro_ap, 3)] for group in figures.families
        },
        "unrelated": {
            kind.which: {"pairs": kind.pairs, "at .2": kind.above, "highest": round(kind.highest, 3)}
            for kind in figures.unrelated
        },
    }
    if everything.times is not None:
        times = everything.times
        row["ends"] = {
            "stretches": times.stretches,
            "missed": times.missed,
            "median": round(max(times.start_median, times.end_median), 2),
            "nine of ten": round(max(times.start_90th, times.end_90th), 2),
        }
    return row


def describe_speeds(found: PairScores, material: CopyMaterial) -> dict[str, Any]:
    """How often 1 is said for 1, and how far off other speeds are, over the stretches that were found."""
    equal, errors = [], []
    for place in place_segments(found, material):
        if place.segment is None:
            continue
        truth = place.truth
        speed = (truth.edited_end - truth.edited_start) / (truth.source_end - truth.source_start)
        if abs(speed - 1) < 0.02:
            equal.append(place.segment.speed == 1.0)
        else:
            errors.append(abs(place.segment.speed / speed - 1))
    return {
        "at speed 1": len(equal),
        "said to be 1": int(sum(equal)),
        "at other speeds": len(errors),
        "within 5 %": int(sum(error <= 0.05 for error in errors)),
    }


def count_strangers(
    engine: Engine, source: FrameSource, material: CopyMaterial, pages: Sequence[tuple[Sequenced, ...]]
) -> dict[str, int]:
    """Pairs of .2 and more of unrelated videos and pages among all copies, videos and pages."""
    # Copies show the footage of the filler.
    unrelated = [
        number
        for number, video in enumerate(material.gallery)
        if video.edit == DISTRACTOR and video.path not in material.filler
    ]
    unrelated = unrelated[:: max(1, len(unrelated) // _SEARCHING)]
    videos = [source(video.path) for video in material.gallery]
    gallery = to_gallery([*videos, *pages])
    queries = [*(videos[number] for number in unrelated), *pages]
    scenes = [*(video.scene for video in material.gallery), *(f"page {number}" for number in range(len(pages)))]
    own = [*unrelated, *range(len(videos), len(videos) + len(pages))]
    of_strangers, of_kind = [], []
    for edge in engine.match([MatchQuery(whole, parts) for whole, *parts in queries], gallery):
        if own[edge.a] != edge.b:
            (of_kind if scenes[own[edge.a]] == scenes[edge.b] else of_strangers).append(edge.score)
    return {
        "pairs": len(queries) * (len(scenes) - 1),
        "at .2": sum(score >= 0.2 for score in of_strangers),
        "at .7": sum(score >= 0.7 for score in of_strangers),
        "of one kind of sky or fruit at .2": sum(score >= 0.2 for score in of_kind),
        "of one kind of sky or fruit at .7": sum(score >= 0.7 for score in of_kind),
    }


def cut_stretches(source: FrameSource, material: CopyMaterial) -> list[tuple[Path, float, Sequenced]]:
    """Stretches of the recordings that queries were cut from: recording, start, frames."""
    stretches = []
    for path in sorted({query.recording.path for query in material.queries}):
        frames = source(path)[0]
        for start in np.arange(0, min(_LONGEST, frames.times[-1] + frames.period - _STRETCH + 0.01), _STRETCH):
            first, end = np.searchsorted(frames.times, [start - 0.01, start + _STRETCH - 0.01])
            stretches.append((path, float(start), frames.cut(int(first), int(end))))
    return stretches


def count_moments(
    engine: Engine, videos: Sequence[tuple[Sequenced, ...]], stretches: Sequence[tuple[Path, float, Sequenced]]
) -> dict[str, int]:
    """Pairs of stretches of one recording, at least one stretch apart, that are taken for copies."""
    gallery = to_gallery([*videos, *((frames,) for _, _, frames in stretches)])
    scores = []
    pairs = 0
    for path, start, frames in stretches:
        others = [
            len(videos) + number
            for number, (other, begin, _) in enumerate(stretches)
            if other == path and abs(begin - start) >= 2 * _STRETCH
        ]
        pairs += len(others)
        if others:
            scores += [edge.score for edge in engine.match([MatchQuery(frames)], gallery) if edge.b in others]
    return {
        "pairs": pairs,
        "at .2": sum(score >= 0.2 for score in scores),
        "at .7": sum(score >= 0.7 for score in scores),
    }


def show(name: str, rows: dict[str, Any]) -> None:
    """Print the figures of a network."""
    for system, row in rows.items():
        print(f"{name}: {system}\n  {json.dumps(row)}", flush=True)


if __name__ == "__main__":
    main()
