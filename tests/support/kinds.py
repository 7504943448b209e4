"""Videos of several kinds, and a small model trained on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tests.support.videos import encode
from vidkin.metric.losses import QuadletLoss
from vidkin.metric.sampling import QuadletSampler
from vidkin.models import ClipEncoder, EncoderConfig, build_model, encoder_input, save_model

COLORS = {
    "warm/red": (200, 30, 40),
    "warm/yellow": (235, 200, 40),
    "cold/blue": (30, 50, 210),
    "cold/cyan": (20, 180, 200),
}


@dataclass(frozen=True)
class Kinds:
    """Clips of 2 s, two per subcategory in ``gallery`` and one in ``queries``, and the trained model."""

    gallery: Path
    queries: Path
    model: Path

    @staticmethod
    def label(path: str | Path) -> str:
        """The label of a clip, ``category/subcategory``."""
        return "/".join(Path(path).parts[-3:-1])

    @classmethod
    def relevance(cls, query: str | Path, target: str | Path) -> int:
        """Relevance: 2 for the same subcategory, 1 for the same category, otherwise 0."""
        first, second = cls.label(query), cls.label(target)
        return 2 if first == second else int(first.split("/")[0] == second.split("/")[0])


def make_kinds(folder: Path) -> Kinds:
    """Write clips of drifting noise in shades of their subcategory's color, and train the model."""
    for number, (label, color) in enumerate(COLORS.items()):
        for copy in range(3):
            part = "queries" if copy == 2 else "gallery"
            path = folder / part / label / f"{copy}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            encode(path, _clouds(color, seed=10 * number + copy), rate=5)
    kinds = Kinds(folder / "gallery", folder / "queries", folder / "model")
    threads = torch.get_num_threads()
    # On a busy machine, two threads that wait for each other take many times as long as one.
    torch.set_num_threads(1)
    _train(kinds)
    torch.set_num_threads(threads)
    return kinds


def _clouds(color: tuple[int, int, int], *, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    tint = np.array(color) + generator.integers(-5, 6, 3)
    coarse = generator.uniform(0.7, 1.1, (10, 12))
    wide = np.kron(coarse, np.ones((12, 12)))
    frames = [np.roll(wide, 4 * index, axis=1)[:64, :96, None] * tint for index in range(10)]
    return [np.clip(frame, 0, 255).astype(np.uint8) for frame in frames]


def _train(kinds: Kinds) -> None:
    """Train for 120 steps of 8 quadlets, on eight other clips of each subcategory; takes a few seconds."""
    config = EncoderConfig(kind="clip", size=32, width=0.5, hidden=16, lstm=8, frames=4)
    shown = [1, 3, 6, 8]  # four frames sampled from ten
    clips, labels = [], []
    for number, color in enumerate(COLORS.values()):
        for copy in range(8):
            frames = np.stack(_clouds(color, seed=1000 + 10 * number + copy))
            clips.append(torch.from_numpy(encoder_input(frames[shown], config)))
            labels.append((number // 2, number))
    inputs = torch.stack(clips)
    model = build_model(config)
    assert isinstance(model, ClipEncoder)
    optimizer = torch.optim.AdamW(model.parameter_groups(5e-4))
    loss = QuadletLoss()
    for quadlets in QuadletSampler(torch.tensor(labels), batch_size=8, batches=120):
        embeddings = model(inputs)
        value = loss(
            *(
                embeddings[rows]
                for rows in (quadlets.query, quadlets.positive, quadlets.intermediate, quadlets.negative)
            )
        )
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    save_model(model, kinds.model, class_names=sorted(COLORS))
