"""Search recall for edits from a third-party package, albumentations.

    python research/benchmarks/albumentations_edits.py [--data FOLDER] [--half develop|held-out] \
        [--kinds develop|held-out]
        [--work FOLDER] [--output FILE.json]

A clip of eight seconds of each source (from the measurement data, VIDKIN_DATA or --data; every second source by name is
held out) is edited by albumentations (`pip install ".[bench]"`), with the same parameters for all frames of a clip, and
encoded as H.264. Every second kind of edit is held out as well. Each original clip is searched for among all edited
clips. The working folder is not deleted afterward.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from _halves import data_parser, half_of, resolve_data, write_results
from other_edits import RATE, Film, load, measure, save

# Disables the package's check for a newer version.
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")


def transforms(height: int, width: int) -> dict[str, Any]:
    """Return the edits by name, for frames of a given size; every second one is held out."""
    import albumentations as package

    return {
        "perspective": package.Perspective(scale=(0.12, 0.18), fit_output=False, p=1),
        "turned by 12 to 20 degrees": package.Rotate(limit=(12, 20), p=1),
        "three holes": package.CoarseDropout(
            num_holes_range=(3, 3), hole_height_range=(0.35, 0.45), hole_width_range=(0.35, 0.45), fill="random", p=1
        ),
        "half of each side": package.RandomResizedCrop(
            size=(height, width), scale=(0.22, 0.28), ratio=(width / height * 0.95, width / height * 1.05), p=1
        ),
        "colors": package.ColorJitter(
            brightness=(0.4, 0.6), contrast=(1.7, 1.9), saturation=(2.0, 2.5), hue=(-0.1, 0.1), p=1
        ),
        "small and shifted": package.Affine(scale=0.55, translate_percent=(0.15, 0.2), p=1),
        "elastic": package.ElasticTransform(alpha=250, sigma=14, p=1),
        "a lens": package.OpticalDistortion(distort_limit=(0.5, 0.6), p=1),
        "fog": package.RandomFog(fog_coef_range=(0.6, 0.8), p=1),
        "rain": package.RandomRain(p=1),
        "a flare": package.RandomSunFlare(src_radius=200, p=1),
        "shadows": package.RandomShadow(num_shadows_limit=(2, 3), p=1),
        "a bent grid": package.GridDistortion(num_steps=5, distort_limit=(-0.5, 0.5), p=1),
        "solarized": package.Solarize(threshold_range=(0.5, 0.5), p=1),
        "two bits": package.Posterize(num_bits=2, p=1),
        "equalized": package.Equalize(p=1),
        "sensor noise": package.ISONoise(color_shift=(0.05, 0.1), intensity=(0.7, 0.9), p=1),
        "mud": package.Spatter(mode="mud", p=1),
        "other channels": package.ChannelShuffle(p=1),
        "JPEG of quality 4": package.ImageCompression(quality_range=(4, 4), p=1),
    }


def edit_film(film: Film, name: str, seed: int) -> Film:
    """Apply an edit with the same random parameters to all frames."""
    import albumentations as package

    height, width = film[0].shape[:2]
    # Resetting the seed for every frame gives all frames the same random parameters.
    return [package.Compose([transforms(height, width)[name]], seed=seed)(image=frame)["image"] for frame in film]


def make_all(sources: list[Path], kinds: list[str], work: Path) -> tuple[list[Path], Path]:
    """Write the original clips and the folder of edited clips."""
    gallery, queries = work / "gallery", []
    for folder in (gallery, work / "queries"):
        folder.mkdir(parents=True, exist_ok=True)
    for number, source in enumerate(sources):
        film = load(source, 0.0)
        if len(film) < 5 * RATE // 2:
            continue
        stem = f"{number:03d}-{source.stem}"
        queries.append(work / "queries" / f"{stem}.mp4")
        for name in kinds:
            target = gallery / f"{stem}.{name.replace(' ', '_')}.mp4"
            if not target.exists():
                save(edit_film(film, name, zlib.crc32(f"{source.name} {name}".encode())), target)
        if not queries[-1].exists():
            save(film, queries[-1], crf=20)
    return queries, gallery


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--kinds", choices=("develop", "held-out"), default="held-out", help="which edits")
    given = resolve_data(parser)
    names = list(transforms(270, 480))
    kinds = names[1::2] if given.kinds == "held-out" else names[::2]
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-albumentations-"))
    work /= f"{given.half}-{given.kinds}"
    queries, gallery = make_all(half_of(given.data, given.half), kinds, work)
    figures = measure("vidkin", queries, gallery, work)
    for edit, row in sorted(figures["edits"].items(), key=lambda item: -item[1]["found"]):
        print(f"{edit:30s} {row['found']:3d} of {row['copies']:3d}, median {row['median score']:.2f}")
    shown = {"kinds": given.kinds, "found": sum(row["found"] for row in figures["edits"].values())}
    write_results(given, {**shown, **figures})


if __name__ == "__main__":
    main()
