"""Augmentation time of self-supervised training, compared with the forward pass of the network.

    python research/benchmarks/augmentation_rate.py [--frames 16] [--side 96] [--seeds 24] [--resnet] \
        [--output FILE.json]

Measures a strong view of a clip with the published settings, with those of the recipe self-supervised, and with every
clip placed in a platform layout and compressed, as well as every edit alone. These are compared with describing the
same clip by the extractor `vidkin` (with --resnet: by a ResNet-50 with random weights, which requires the extra train;
--frames 28 --side 256 is the published input). CPU time with one thread, mean over seeds (median for the description),
interleaved so that load on the machine affects all alike. Target: a strong view takes less time than its description.
The exit status is 1 if the target is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from _measure import machine
from vidkin.datasets.augmentation.clip_views import (
    StrongSettings,
    plan_frames,
    rand_augment,
    strong_view,
    weak_view,
)
from vidkin.datasets.augmentation.degrade import compress
from vidkin.datasets.augmentation.geometry import (
    add_borders,
    film_screen,
    picture_in_picture,
    reframe,
    split_screen,
    video_in_video,
)
from vidkin.datasets.augmentation.overlays import add_caption, add_sticker, lay_over
from vidkin.features import open_extractor
from vidkin.media import Frames

Run = Callable[[int], object]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--side", type=int, default=96)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--resnet", action="store_true")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(4 * given.frames, 3, 12, 12, generator=generator)
    clips = torch.nn.functional.interpolate(coarse, (given.side, given.side), mode="bilinear")
    clip, donors = clips[: given.frames], clips[given.frames :].unflatten(0, (3, given.frames))
    recipe, most = (StrongSettings(arranged=share, compressed=share) for share in (0.2, 1.0))
    network = "vidkin" if not given.resnet else "ResNet-50"
    runs: dict[str, Run] = {
        f"forward pass of {network}": describe(clip, given.resnet),
        "weak view": partial(weak_view, clip),
        "strong view": partial(strong_view, clip, donors),
        "strong view, recipe self-supervised": partial(strong_view, clip, donors, settings=recipe),
        "strong view, all arranged and compressed": partial(strong_view, clip, donors, settings=most),
        **edits(clip, donors),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    with torch.inference_mode():
        for seed in range(-1, given.seeds):  # the first run is a warm-up
            for name, run in runs.items():
                begun = time.process_time()
                run(abs(seed))
                if seed >= 0:
                    seconds[name].append(time.process_time() - begun)
    # Views depend on random parameters, so report the mean; the forward pass does not vary, so report the median.
    times = {name: statistics.mean(values) for name, values in seconds.items()}
    forward = statistics.median(seconds[f"forward pass of {network}"])
    for name, value in times.items():
        print(f"{name:42} {1000 * value:8.2f} ms  {value / forward:6.3f} of the forward pass")
    if given.output:
        facts = {
            "machine": machine(),
            "clip": list(clip.shape),
            "network": network,
            "milliseconds": {name: 1000 * value for name, value in times.items()},
            "share_of_forward_pass": {name: value / forward for name, value in times.items()},
        }
        given.output.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return int(times["strong view"] > forward)


def describe(clip: Tensor, resnet: bool) -> Run:
    """Describe a clip as training does."""
    if resnet:
        import timm

        network = timm.create_model("resnet50", pretrained=False).eval()
        return lambda seed: network(clip)
    extractor = open_extractor("vidkin")
    images = np.ascontiguousarray((clip.permute(0, 2, 3, 1) * 255).round().to(torch.uint8).numpy())
    return lambda seed: extractor.extract(Frames(images, np.arange(len(images), dtype=np.float64)))


def edits(clip: Tensor, donors: Tensor) -> dict[str, Run]:
    """Return every edit as a function of its own."""

    def run_with_seed(edit: Callable[[torch.Generator], object]) -> Run:
        return lambda seed: edit(torch.Generator().manual_seed(seed))

    caption = partial(add_caption, height=(0.1, 0.3), share=1.0)
    made: dict[str, Callable[[torch.Generator], object]] = {
        "edit in time": lambda g: plan_frames(len(clip), g).apply(clip, g),
        "RandAugment": lambda g: rand_augment(clip, g),
        "caption": lambda g: lay_over(clip, g, caption),
        "sticker": lambda g: lay_over(clip, g, add_sticker),
        "video in video": lambda g: video_in_video(clip, donors[0], g),
        "reframe": lambda g: reframe(clip, g),
        "moving reframe": lambda g: reframe(clip, g, moving=True),
        "blurred borders": lambda g: add_borders(clip, g),
        "colored borders": lambda g: add_borders(clip, g, kind="colored"),
        "split screen of two": lambda g: split_screen(clip, donors[:1], g),
        "split screen of four": lambda g: split_screen(clip, donors, g, parts=4),
        "picture in picture": lambda g: picture_in_picture(clip, donors[0], g),
        "filmed screen": lambda g: film_screen(clip, g),
        "compression": lambda g: compress(clip, g, quality=(10.0, 10.0), share=1.0),
    }
    return {name: run_with_seed(edit) for name, edit in made.items()}


if __name__ == "__main__":
    raise SystemExit(main())
