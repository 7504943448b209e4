"""Describe the background photographs once with each extractor of the package, so that no index has to.

    python research/benchmarks/ship_backgrounds.py --output src/vidkin/index/storage/data

The photographs are those of `vidkin.features.background_frames`; the files in the tree were made from the originals in
scikit-image, before JPEG. Run it again when weights, whitening or what an extractor computes have changed; files of
other fingerprints are removed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from vidkin.features import open_extractor
from vidkin.index.query.common import Calibration
from vidkin.index.storage.opening import LocalPlace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob("*.safetensors"):
        old.unlink()
    # Those of `vidkin?views=query` are those of `vidkin`.
    for name in ("vidkin", "vidkin?views=none", "classical"):
        extractor = open_extractor(name)
        Calibration.measure(extractor).save(LocalPlace(output), f"{extractor.fingerprint}.safetensors")


if __name__ == "__main__":
    main()
