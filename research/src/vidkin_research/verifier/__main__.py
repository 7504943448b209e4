"""Train a verifier on footage outside both halves of the copy benchmark: `python -m vidkin_research.verifier`."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import write_text
from vidkin.match import Verifier
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.frame_encoder.material import open_material
from vidkin_research.frame_encoder.raw_vectors import VectorStore, parse_network
from vidkin_research.verifier.cards import measure_shared_cards
from vidkin_research.verifier.edited import add_edited
from vidkin_research.verifier.frames import STORED_RATE, FrameSource, read_cohort
from vidkin_research.verifier.material import make_material
from vidkin_research.verifier.pairs import Pairs, Stills, count_false, join_pairs, measure_pairs, rank_copies
from vidkin_research.verifier.stills import encode_stills
from vidkin_research.verifier.train import (
    Loss,
    VerifierSettings,
    average_verifiers,
    calibrate,
    score_pairs,
    train_verifier,
)

logger = logging.getLogger(__name__)

# One in this many recordings is held out, to choose the loss.
_FOLD = 4
# (step between stored frames for queries, for the gallery, whether queries run backward). The steps differ because an
# index may be sampled more coarsely than a query.
_STEPS = ((1, 1, False), (2, 2, False), (1, 2, False), (1, 2, True))


def main() -> None:
    """Create the data, compare all pairs at several frame rates and with reversed queries, and train on them."""
    parser = argparse.ArgumentParser(prog="python -m vidkin_research.verifier", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the measurement data")
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for copies and vectors, outside the repository"
    )
    parser.add_argument("--network", required=True, metavar="NAME=FILE@SIDE", help="ONNX file of the frame encoder")
    parser.add_argument(
        "--pictures", type=Path, required=True, help="work folder of the frame encoder, which provides the cohort"
    )
    parser.add_argument("--losses", nargs="+", choices=get_args(Loss), default=["quad_linear"])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--mixed", action="store_true", help="also train on copies with mixed edits")
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        help="path of the JSON file to write, with the verifier and its provenance",
    )
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    network = parse_network(given.network)
    store = VectorStore(network, given.work / "vectors", rate=STORED_RATE, short_side=network.side)
    cohort = read_cohort(given.pictures, given.work, store)
    pictures = open_material(given.pictures)
    material = make_material(given.data, "training", given.work / "training")
    if given.mixed:
        material = add_edited(material, pictures, given.work / "mixed")
    stills = encode_stills(store, pictures, given.work)
    sources = {step: FrameSource(store, cohort, given.work, step=step) for step in (1, 2)}
    is_left = np.concatenate([_is_held_out(material), np.arange(len(stills.plain)) % _FOLD == 0])
    parts, held = [], []
    for query_step, step, backwards in _STEPS:
        queries = FrameSource(store, cohort, given.work, step=query_step, crops=True, backwards=backwards)
        rates = STORED_RATE / query_step, STORED_RATE / step
        # Stills are the same backward.
        asked = [] if backwards else stills.queries(rates[0], cohort)
        still = Stills(asked, stills.videos(rates[1], cohort), stills.is_copy()[: len(asked)])
        parts.append(measure_pairs(sources[step], material, queries_of=queries, stills=still))
        held.append(np.tile(is_left[: len(material.queries) + len(asked)], 2))
        if not backwards:
            columns = parts[-1].levels.shape[1]
            parts.append(measure_shared_cards(store, cohort, material, queries, sources[step], columns=columns))
            held.append(_is_held_out(material))
    pairs = join_pairs(parts)
    logger.info("%d queries, %d videos, %d pairs compared", *pairs.levels.shape, int(pairs.compared.sum()))
    document = train_document(pairs, np.concatenate(held), given.losses, given.seeds)
    document["trained"] |= {
        "network": network.key(),
        "machine": describe_machine(),
        "material": sorted({query.recording.path.name for query in material.queries}),
        "stills": len(stills.plain),
    }
    write_text(given.output, json.dumps(document) + "\n")
    logger.info("%s", json.dumps(document["trained"]["losses"], indent=1))


def train_document(pairs: Pairs, held: NDArray[np.bool_], losses: Sequence[Loss], seeds: int) -> dict[str, Any]:
    """Train a verifier and return it as JSON values, with its training data and a comparison of the losses.

    The networks of all losses and seeds are averaged, because a single network depends more on its seed than on its
    loss.

    Args:
        pairs: Training and validation pairs.
        held: [Q], whether each query is held out. The losses and their average are compared on held-out queries, with
            networks trained on the others.
        losses: Losses to compare.
        seeds: Number of networks per loss.
    """
    training, validation = pairs.of_queries(np.flatnonzero(~held)), pairs.of_queries(np.flatnonzero(held))
    rows: dict[str, dict[str, float]] = {}
    every: list[Verifier] = []
    for loss in losses:
        networks = [train_verifier(training, VerifierSettings(loss=loss, seed=seed))[0] for seed in range(seeds)]
        every += networks
        rows[loss] = _measure(networks, training, validation)
        logger.info("%s: %s", loss, rows[loss])
    rows["all of them"] = _measure(every, training, validation)
    settings = [VerifierSettings(loss=loss, seed=seed) for loss in losses for seed in range(seeds)]
    trained = [train_verifier(pairs, each) for each in settings]
    verifier = calibrate(average_verifiers([network for network, _ in trained]), pairs)
    return {
        **verifier.to_dict(),
        "trained": {
            "networks": [provenance for _, provenance in trained],
            "queries left out to compare the losses": int(held.sum()),
            "mean of best": rank_copies(validation.mean_of_best, validation.levels),
            "losses": rows,
        },
    }


def _measure(networks: Sequence[Verifier], training: Pairs, validation: Pairs) -> dict[str, float]:
    """Evaluate the average of several networks on the held-out queries."""
    scores = score_pairs(calibrate(average_verifiers(networks), training), validation)
    return {**rank_copies(scores, validation.levels), **count_false(scores, validation.levels)}


def _is_held_out(material: CopyMaterial) -> NDArray[np.bool_]:
    """Return whether each query is from a recording that is held out to choose the loss."""
    recordings = sorted({query.recording.path for query in material.queries})
    held = set(recordings[::_FOLD])
    return np.array([query.recording.path in held for query in material.queries])


if __name__ == "__main__":
    main()
