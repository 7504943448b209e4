"""The steps from pictures to a network, each a command that resumes: ``python -m vidkin_research.frame_encoder STEP``.

    fetch      download and unpack the packages of pictures (apt-get download)
    pictures   gather all pictures in the work folder
    crops      write the edited crops in shards
    teach      compute the teacher's vectors: of plain crops, then of edited ones, until all are there
    train      train a student on what is there; go on where a run stopped
    export     write the ONNX file of a checkpoint, with its provenance beside it
"""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path

from vidkin_research.frame_encoder import crops, pictures, teacher

_SEED = 57


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="work folder, outside of the tree")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("fetch")
    steps.add_parser("pictures").add_argument("--data", type=Path, required=True, help="folder of the shared data")
    steps.add_parser("crops").add_argument("--shards", type=int, help="write the first so many shards only")
    teach = steps.add_parser("teach")
    teach.add_argument("--teacher", required=True, help="onnx:FILE")
    teach.add_argument("--threads", type=int, default=1)
    teach.add_argument("--wait", action="store_true", help="wait for crops that are being written")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    if given.step == "fetch":
        pictures.fetch_packages(given.work)
    elif given.step == "pictures":
        print(pictures.gather(given.work, given.data))
    elif given.step == "crops":
        rounds = pictures.read_rounds(given.work)
        found = [picture for each in rounds for picture in each]
        for shard, (numbers, known) in list(enumerate(crops.plan_shards(rounds, _SEED)))[: given.shards]:
            crops.write_shard(given.work, shard, numbers, found[:known], _SEED)
            logging.info("shard %d", shard)
    elif given.step == "teach":
        encode = teacher.open_pixel_encoder(given.teacher, threads=given.threads)
        while teacher.teach(given.work, encode) or given.wait:
            if not teacher.missing_files(given.work):
                time.sleep(20)


if __name__ == "__main__":
    main()
