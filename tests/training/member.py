"""Training process started by `torchrun`: ``member.py JOBS PAUSE``, with [[recipe, folder], ...] in the file JOBS."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch

import vidkin
from vidkin.training import TrainingProgress

jobs, pause = sys.argv[1:]
Path(f"{jobs}.{os.environ['RANK']}.pid").write_text(str(os.getpid()), encoding="utf-8")
torch.set_num_threads(1)
reported: list[str] = []


def report(progress: TrainingProgress) -> None:
    reported.append(progress.phase)
    if progress.phase == "training":
        time.sleep(float(pause))


for recipe, folder in json.loads(Path(jobs).read_text(encoding="utf-8")):
    vidkin.train(recipe, output=folder, on_progress=report)
assert bool(reported) == (os.environ["RANK"] == "0"), "only the first process must report"
