"""Compute the cohort of the extractor `vidkin`, which normalizes frame scores.

    python research/benchmarks/ship_cohort.py --pictures FOLDER --work FOLDER

Writes `frame_encoder_cohort.safetensors` into the package, next to the network: vectors of 1,000 training images of the
frame encoder, the same ones used to train the verifier. Must be run again after each change of the network.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from vidkin._base.files import write_bytes
from vidkin.features import open_extractor
from vidkin.features.frame_extractor import COHORT_FILE, NETWORK_FILE
from vidkin_research.frame_encoder.raw_vectors import Network, VectorStore
from vidkin_research.verifier.frames import read_cohort


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, required=True, help="working folder of the frame encoder")
    parser.add_argument("--work", type=Path, required=True, help="folder in which the vectors are cached")
    given = parser.parse_args()
    network = Network("vidkin", NETWORK_FILE, open_extractor("vidkin").short_side)
    vectors = read_cohort(given.pictures, given.work, VectorStore(network, given.work / "vectors"))
    digest = hashlib.sha256(NETWORK_FILE.read_bytes()).hexdigest()
    write_bytes(COHORT_FILE, save({"vectors": vectors.astype(np.float16)}, metadata={"network": digest}))


if __name__ == "__main__":
    main()
