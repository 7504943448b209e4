"""Peak memory of a comparator training step, relative to a naive implementation.

    python research/benchmarks/comparator_step.py [--clips 64] [--frames 28] [--regions 1] [--dimension 128] \
        [--output FILE.json]

A step computes the similarity maps of all clip pairs, the network, InfoNCE, QuadLinear-AP on videos and on frames, and
the gradient. The naive implementation keeps the products of all regions, the activations of all pairs and, for frames,
the differences [B, B, T, T, T], of which it uses the related pairs. Both compute the same loss. Target: one fifth of
the memory. The exit status is 1 if the target is missed or the losses differ.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

from _measure import machine, measure
from vidkin.metric.losses import FrameQuadLinearAPLoss, InfoNCELoss, QuadLinearAPLoss, quad_linear_step
from vidkin.models.comparator import Comparator, build_comparator
from vidkin.models.config import ComparatorConfig

TARGET = 5.0
RATE, DELTA, RHO = 0.35, 0.05, 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=64)
    parser.add_argument("--frames", type=int, default=28)
    parser.add_argument("--regions", type=int, default=1)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    torch.manual_seed(0)
    shape = (given.clips, given.frames, given.regions, given.dimension)
    videos = torch.nn.functional.normalize(torch.randn(shape), dim=-1)
    same = torch.arange(given.clips) % (given.clips // 2)
    relevance = (same[:, None] == same).long()
    rows = torch.nn.functional.normalize(torch.randn(given.clips * given.frames, 64), dim=-1)
    labels = (rows @ rows.T).view(given.clips, given.frames, given.clips, given.frames).transpose(1, 2)
    model = build_comparator(ComparatorConfig(dimension=given.dimension, weighting="attention"), weights="random")
    ours = measure(lambda: lean_step(model, videos, relevance, labels), repeats=1)
    naive = measure(lambda: naive_step(model, videos, relevance, labels), repeats=1)
    ratio = naive.peak_mib / ours.peak_mib
    print(
        f"vidkin {ours.peak_mib:.0f} MiB, {ours.seconds:.1f} s; naive {naive.peak_mib:.0f} MiB, {naive.seconds:.1f} s"
    )
    print(f"ratio {ratio:.1f}, losses {ours.value:.6f} and {naive.value:.6f}")
    if given.output:
        facts = {
            "machine": machine(),
            "shape": shape,
            "vidkin": vars_of(ours),
            "naive": vars_of(naive),
            "ratio": ratio,
        }
        given.output.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return int(ratio < TARGET or abs(ours.value - naive.value) > 1e-4 * abs(naive.value))


def vars_of(found: object) -> dict[str, float]:
    return {name: getattr(found, name) for name in ("value", "seconds", "peak_mib")}


def lean_step(model: Comparator, videos: Tensor, relevance: Tensor, labels: Tensor) -> Tensor:
    comparison = model(videos)
    loss: Tensor = InfoNCELoss()(comparison.scores, relevance) + QuadLinearAPLoss()(comparison.scores, relevance)
    loss = loss + FrameQuadLinearAPLoss()(comparison.frame_maps, labels, relevance)
    return finish(model, loss)


def naive_step(model: Comparator, videos: Tensor, relevance: Tensor, labels: Tensor) -> Tensor:
    count, frames = videos.shape[:2]
    weighed = model.weigh(videos)
    maps = torch.einsum("atrd,bsed->abtsre", weighed, weighed).amax(-1).mean(-1)
    assert model.visil_head is not None
    learned = model.visil_head(maps.flatten(0, 1))
    scores = (learned.clamp(-1, 1).amax(2).mean(1) / 2 + 0.5).view(count, count)
    loss: Tensor = InfoNCELoss()(scores, relevance) + QuadLinearAPLoss()(scores, relevance)
    return finish(model, loss + naive_frames(maps, labels, relevance, frames))


def naive_frames(maps: Tensor, labels: Tensor, relevance: Tensor, frames: int) -> Tensor:
    """Compute QuadLinear-AP for all frames of all clip pairs, then select those of related clips."""
    places = labels.argsort(dim=3, descending=True, stable=True).argsort(dim=3)
    kept = round(RATE * frames)
    positive, negative = places < kept, places >= frames - kept
    difference = maps.unsqueeze(3) - maps.unsqueeze(4)
    above = (quad_linear_step(difference, delta=DELTA) * negative.unsqueeze(3)).sum(4)
    level = 1 + RHO * ((difference > 0) * positive.unsqueeze(3)).sum(4)
    risk = above / level
    per_frame = (risk / (1 + risk) * positive).sum(3) / positive.sum(3)
    related = (relevance > 0) & ~torch.eye(len(relevance), dtype=torch.bool)
    return per_frame.mean(2)[related].mean()


def finish(model: Comparator, loss: Tensor) -> Tensor:
    model.zero_grad()
    torch.autograd.backward(loss)
    return loss.detach()


if __name__ == "__main__":
    raise SystemExit(main())
