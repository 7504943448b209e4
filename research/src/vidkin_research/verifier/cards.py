"""Unrelated videos that share only a card: a name or a sign on a plain background, shown for a few seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw

from vidkin.features import frame_information, make_thumbnails, small_luma
from vidkin.match import NUMBERS, Sequenced, compare_views
from vidkin.similarity import WHOLE
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.frame_encoder.drawn import draw_text_line, random_color, random_words
from vidkin_research.frame_encoder.raw_vectors import Vectors, VectorStore
from vidkin_research.verifier.pairs import COPY, LEAST_ALIKE, LEFT_OUT, STRANGER, Pairs, level_of
from vidkin_research.verifier.stills import hold

__all__ = ["draw_card", "measure_shared_cards"]

# Size of a card in pixels, range of its duration in seconds, and number of unrelated videos that share it per query.
_WIDTH, _HEIGHT, _SECONDS, _SHARING = 192, 128, (2.0, 6.0), 8
# Number of copies, and of videos without the card, that are compared with each query with a card.
_COPIES, _OTHERS = 6, 8


def draw_card(random: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a random card [H, W, 3] with a sign, words or both."""
    card = PILImage.new(
        "RGB", (_WIDTH, _HEIGHT), random_color(random, *((0, 60) if random.random() < 0.7 else (200, 256)))
    )
    pen = ImageDraw.Draw(card)
    kind = int(random.integers(3))
    if kind != 1:
        x, y, radius = (float(each) for each in random.uniform((70, 30, 10), (120, 60, 24)))
        shape = pen.ellipse if random.random() < 0.5 else pen.rectangle
        shape((x - radius, y - radius, x + radius, y + radius), fill=random_color(random))
    if kind != 0:
        position = float(random.uniform(20, 70)), float(random.uniform(70, 95))
        draw_text_line(pen, position, random_words(random, int(random.integers(1, 3))), 14, random_color(random))
    return np.asarray(card)


def measure_shared_cards(
    store: VectorStore,
    cohort: Vectors,
    material: CopyMaterial,
    queries_of: Callable[[Path], tuple[Sequenced, ...]],
    frames_of: Callable[[Path], tuple[Sequenced, ...]],
    *,
    columns: int,
) -> Pairs:
    """Compare queries that start or end with a card with their copies, and with unrelated videos that have the same
    card.

    Args:
        store: Encodes the cards.
        cohort: [N, D] vectors of unrelated images.
        material: Queries and gallery.
        queries_of, frames_of: Functions that return the frames of a file.
        columns: Number of columns of the pairs that these are joined with; those beyond the gallery are not compared.
    """
    random = np.random.default_rng(59)
    shape = len(material.queries), columns
    numbers = np.zeros((*shape, len(NUMBERS)), np.float32)
    levels, means = np.full(shape, LEFT_OUT, np.int8), np.zeros(shape, np.float32)
    for row, query in enumerate(material.queries):
        image = draw_card(random)
        vector, small = (
            store.encode([image])[0],
            make_thumbnails(small_luma(image[None]), np.array([WHOLE], np.float32)),
        )
        weight = float(frame_information(image[None])[0])
        kinds = np.array([level_of(query, video.family, video.scene, video.source) for video in material.gallery])
        strangers = random.permutation(np.flatnonzero(kinds == STRANGER))[: _SHARING + _OTHERS].tolist()
        copies = random.permutation(np.flatnonzero(kinds == COPY))[:_COPIES].tolist()
        own = queries_of(query.path)[0]
        seconds = float(random.uniform(*_SECONDS))
        asked = _add_card(own, hold(vector, seconds, 1 / own.period, cohort, small[0, 0], weight), random)
        for number, column in enumerate([*strangers, *copies]):
            other = frames_of(material.gallery[column].path)[0]
            if number < _SHARING:
                other = _add_card(other, hold(vector, seconds, 1 / other.period, cohort, small[0, 0], weight), random)
            for measured, _, _ in compare_views((asked,), (other,), least_alike=LEAST_ALIKE):
                numbers[row, column], levels[row, column] = measured.numbers, kinds[column]
    return Pairs(numbers, levels != LEFT_OUT, levels, means)


def _add_card(video: Sequenced, card: Sequenced, random: np.random.Generator) -> Sequenced:
    """Add a card before or after a video."""
    first, last = (card, video) if random.random() < 0.5 else (video, card)
    assert first.thumbnails is not None
    assert last.thumbnails is not None
    start = float(first.times[-1]) + first.period - float(last.times[0])
    return Sequenced(
        np.concatenate([first.vectors, last.vectors]),
        np.concatenate([first.times, last.times + start]),
        np.concatenate([first.levels, last.levels]),
        np.concatenate([first.information, last.information]),
        thumbnails=np.concatenate([first.thumbnails, last.thumbnails]),
    )
