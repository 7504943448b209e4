"""Copy retrieval on real videos: every source edited as people edit, queries against all copies and distractors.

    python benchmarks/copy_retrieval.py FOLDER --work /tmp/copies
    python benchmarks/copy_retrieval.py FOLDER --work /tmp/copies \
        --extractor 'timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5' --weights W --whitening F

Sources: every video of at least 6 s is cut into pieces of at most 30 s. Queries: the pieces.
Gallery: every piece edited in every way that `vidkin.media.EDITS` knows, and all remaining videos as distractors, among
them real copies of sources (families, below). Relevant: a gallery video that shows some of the query's time of its
recording. Two protocols: `strict` counts other moments of the same recording (before the same fixed camera) as wrong;
`neutral` leaves them out of the list. The main figures leave out picture-in-picture and mirror, which are in the table.
Unrelated footage around excerpts and pictures in pictures is made of the videos shorter than 6 s.

Peers in the same run: pHash per frame (imagehash), and vPDQ where the package `vpdq` is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from _copies import Families, Item, Piece, prepare
from vidkin.index import Index, sampling_rate
from vidkin.media import EDITS, probe, read_frames
from vidkin.metric.measures import mean_average_precision, micro_average_precision
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import Segment

SIDE_EDITS = ("picture_in_picture", "mirror")


def relevance(pieces: list[Piece], items: list[Item]) -> np.ndarray:
    """[Q, G]: 1 relevant, -1 another moment of the same recording, 0 other."""
    table = np.zeros((len(pieces), len(items)))
    for row, piece in enumerate(pieces):
        for column, item in enumerate(items):
            if item.family != piece.family:
                continue
            if item.source is None or item.segment is None:
                table[row, column] = 1  # a real copy: of the whole family
            else:
                overlap = min(piece.end, item.segment[1]) - max(piece.start, item.segment[0])
                table[row, column] = 1 if overlap > 0.5 else -1
    return table


def vidkin_scores(
    pieces: list[Piece], items: list[Item], folder: Path, options: dict[str, str]
) -> tuple[np.ndarray, list[list[tuple[Segment, ...]]], dict[str, float]]:
    """Scores [Q, G] through the product: index, search with every video as a candidate."""
    with Index.open(folder, **options) as index:
        started = time.perf_counter()
        report = index.add([item.path for item in items])
        if report.broken:
            raise SystemExit(f"broken: {report.broken}")
        indexed = time.perf_counter() - started
        column = {os.path.abspath(item.path): number for number, item in enumerate(items)}
        scores = np.zeros((len(pieces), len(items)))
        segments: list[list[tuple[Segment, ...]]] = [[() for _ in items] for _ in pieces]
        times = []
        for row, piece in enumerate(pieces):
            started = time.perf_counter()
            for match in index.search(piece.path, limit=len(items), candidates=len(items)):
                scores[row, column[match.path]] = match.score
                segments[row][column[match.path]] = match.segments
            times.append(time.perf_counter() - started)
        recall = index.recall(queries=len(pieces), limit=100).recall
        identical = [_identical(index, item) for item in items if item.edit == "reencode"]
    facts = {
        "index_seconds": indexed,
        "search_seconds_median": statistics.median(times),
        "recall_at_100": recall,
        "identical_min": min(identical),
    }
    return scores, segments, facts


def _identical(index: Index, item: Item) -> float:
    matches = index.search(item.path, limit=5, mirrored=False)
    return next(match.score for match in matches if match.path == os.path.abspath(item.path))


def frame_hashes(path: Path) -> np.ndarray:
    """pHash of a frame a second (more in short videos, as vidkin samples), [T, 64] bool."""
    import imagehash
    from PIL import Image

    frames = read_frames(path, rate=sampling_rate(probe(path).duration), short_side=240)
    return np.stack([imagehash.phash(Image.fromarray(image)).hash.ravel() for image in frames.images])


def phash_scores(pieces: list[Piece], items: list[Item]) -> np.ndarray:
    """Mean over a video's frames of the nearest frame of the other (1 - 2 * Hamming / 64), the larger direction."""
    gallery = [2.0 * frame_hashes(item.path) - 1 for item in items]
    scores = np.zeros((len(pieces), len(items)))
    for row, piece in enumerate(pieces):
        query = 2.0 * frame_hashes(piece.path) - 1
        for column, target in enumerate(gallery):
            alike = query @ target.T / 64
            scores[row, column] = max(alike.max(1).mean(), alike.max(0).mean())
    return scores


def vpdq_scores(pieces: list[Piece], items: list[Item]) -> np.ndarray:
    """Share of frames with a PDQ distance of at most 31, the larger direction: vPDQ's own rule."""
    import vpdq

    def bits(path: Path) -> np.ndarray:
        features = vpdq.computeHash(str(path), seconds_per_hash=1)
        kept = [f for f in features if f.quality >= 50] or features
        return np.stack([np.unpackbits(np.frombuffer(bytes.fromhex(f.hex), np.uint8)) for f in kept]).astype(
            np.float32
        )

    gallery = [bits(item.path) for item in items]
    scores = np.zeros((len(pieces), len(items)))
    for row, piece in enumerate(pieces):
        query = bits(piece.path)
        for column, target in enumerate(gallery):
            near = (query @ (1 - target.T) + (1 - query) @ target.T) <= 31
            scores[row, column] = max(near.any(1).mean(), near.any(0).mean())
    return scores


def summarise(
    scores: np.ndarray, truth: np.ndarray, pieces: list[Piece], items: list[Item]
) -> dict[str, object]:
    """Both protocols, every edit, and the distribution of scores."""
    edits = np.array([item.edit for item in items])
    main = ~np.isin(edits, SIDE_EDITS)

    def measured(valid: np.ndarray) -> dict[str, float]:
        s, r = torch.from_numpy(scores), torch.from_numpy((truth > 0).astype(np.float64))
        v = torch.from_numpy(valid.copy())
        return {
            "mAP": float(mean_average_precision(s, r, valid=v)),
            "micro_AP": float(micro_average_precision(s, r, valid=v)),
        }

    everywhere = np.broadcast_to(main, truth.shape)
    result: dict[str, object] = {
        "strict": measured(everywhere),
        "neutral": measured(everywhere & (truth >= 0)),
        "edits": {
            name: measured(((edits == name)[None] & (truth > 0)) | (truth == 0))
            for name in [*EDITS, "real copy"]
            if name in edits
        },
    }
    unrelated = np.array([[item.scene != piece.scene for item in items] for piece in pieces])
    unrelated &= everywhere & (truth == 0)
    result["unrelated_99th"] = float(np.quantile(scores[unrelated], 0.99))
    copies = scores[everywhere & (truth > 0)]
    result["copies_quantiles"] = {q: float(np.quantile(copies, q)) for q in (0.05, 0.1, 0.5)}
    return result


def localisation(
    pieces: list[Piece], items: list[Item], segments: list[list[tuple[Segment, ...]]]
) -> dict[str, float]:
    """Errors of the start and end of the best segment in the copy, seconds; a copy not found counts as 30 s."""
    starts, ends, missed = [], [], 0
    for row, piece in enumerate(pieces):
        for column, item in enumerate(items):
            if item.source is not piece or item.segment is None or item.edit in SIDE_EDITS:
                continue
            found = segments[row][column]
            missed += not found
            starts.append(abs(found[0].target_start - item.segment[2]) if found else 30.0)
            ends.append(abs(found[0].target_end - item.segment[3]) if found else 30.0)
    return {
        "start_median": statistics.median(starts),
        "end_median": statistics.median(ends),
        "start_90th": float(np.quantile(starts, 0.9)),
        "end_90th": float(np.quantile(ends, 0.9)),
        "missed": missed,
        "pairs": len(starts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="real videos")
    parser.add_argument("--work", type=Path, required=True, help="where copies and indexes are kept")
    parser.add_argument("--extractor", default=None, help="a second extractor beside classical")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--whitening", type=Path)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--alone", action="store_true", help="no two files of the folder show the same")
    parser.add_argument("--distractors", type=Path, nargs="+", default=[], help="folders of unrelated videos")
    parser.add_argument("--sources", type=int, help="at most so many sources; default all")
    parser.add_argument("--leave-out", nargs="+", default=[], help="names of files that are not looked at")
    parser.add_argument("--output", type=Path, help="folder for NAME.md and .json")
    parser.add_argument("--name", default="copy_retrieval", help="of the report")
    arguments = parser.parse_args()
    pieces, items = prepare(
        arguments.folder,
        arguments.work,
        Families(alone=arguments.alone),
        distractors=arguments.distractors,
        sources=arguments.sources,
        left_out=arguments.leave_out,
    )
    truth = relevance(pieces, items)
    print(f"{len(pieces)} queries, {len(items)} gallery videos, {int((truth > 0).sum())} relevant pairs")
    systems: dict[str, Callable[[], dict[str, object]]] = {
        "vidkin classical": lambda: _vidkin(pieces, items, truth, arguments.work, {"extractor": "classical"})
    }
    if arguments.extractor:
        options = {
            "extractor": arguments.extractor,
            "weights": arguments.weights,
            "whitening": arguments.whitening,
        }
        systems[f"vidkin {arguments.extractor.partition('?')[0]}"] = lambda: _vidkin(
            pieces, items, truth, arguments.work, options
        )
    notes = []
    if arguments.distractors:
        without = f" without {', '.join(arguments.leave_out)}" if arguments.leave_out else ""
        others = ", ".join(path.name for path in arguments.distractors)
        notes.append(
            f"Sources: {len({piece.recording for piece in pieces})} videos of `{arguments.folder.name}`{without}; "
            f"distractors: the others, and {others}. Every file counts as a recording of its own."
        )
    if not arguments.no_peers:
        systems["pHash per frame"] = lambda: summarise(phash_scores(pieces, items), truth, pieces, items)
        try:
            import vpdq  # noqa: F401

            systems["vPDQ"] = lambda: summarise(vpdq_scores(pieces, items), truth, pieces, items)
        except ImportError:
            notes.append(
                "vPDQ left out: the package vpdq (built with FFmpeg's development files) is not installed."
            )
    results = {}
    for name, run in systems.items():
        results[name] = run()
        print(
            name, json.dumps({k: v for k, v in results[name].items() if k != "edits"}, indent=1), flush=True
        )
    text = _page(results, pieces, items, notes)
    print(text)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{arguments.name}.md").write_text(text)
        (arguments.output / f"{arguments.name}.json").write_text(
            json.dumps({"machine": describe_machine(), "results": results, "notes": notes}, indent=1) + "\n"
        )


def _vidkin(
    pieces: list[Piece], items: list[Item], truth: np.ndarray, work: Path, options: dict[str, str]
) -> dict[str, object]:
    folder = work / f"{options['extractor'].partition('?')[0].replace(':', '-')}.vidkin"
    scores, segments, facts = vidkin_scores(pieces, items, folder, options)
    np.save(folder / "scores.npy", scores)
    return {
        **summarise(scores, truth, pieces, items),
        "localisation": localisation(pieces, items, segments),
        **facts,
    }


def _page(results: dict, pieces: list[Piece], items: list[Item], notes: list[str]) -> str:
    lines = [
        "# Copy retrieval on real videos",
        "",
        "Made by `python benchmarks/copy_retrieval.py`; its docstring is the protocol.",
        "",
        f"{len(pieces)} queries against {len(items)} videos. {describe_machine()}",
        "",
        "| system | strict mAP | strict micro-AP | neutral mAP | neutral micro-AP | unrelated 99th | copies median |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        lines.append(
            f"| {name} | {r['strict']['mAP']:.3f} | {r['strict']['micro_AP']:.3f} | {r['neutral']['mAP']:.3f} | "
            f"{r['neutral']['micro_AP']:.3f} | {r['unrelated_99th']:.3f} | {r['copies_quantiles'][0.5]:.3f} |"
        )
    lines += ["", "Localisation, seconds in the copy, and identical videos:", "",
              "| system | start median | end median | start 90th | end 90th | not found | identical | recall@100 |",
              "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, r in results.items():
        if "localisation" in r:
            place = r["localisation"]
            lines.append(
                f"| {name} | {place['start_median']:.2f} | {place['end_median']:.2f} | {place['start_90th']:.2f} | "
                f"{place['end_90th']:.2f} | {place['missed']} of {place['pairs']} | {r['identical_min']:.4f} | "
                f"{r['recall_at_100']:.3f} |"
            )
    lines += ["", "mAP / micro-AP of each edit alone (neutral):", "",
              "| edit | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]  # fmt: skip
    for edit in next(iter(results.values()))["edits"]:
        cells = [
            f"{r['edits'][edit]['mAP']:.2f} / {r['edits'][edit]['micro_AP']:.2f}" for r in results.values()
        ]
        lines.append(f"| {edit} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *notes, ""])


if __name__ == "__main__":
    main()
