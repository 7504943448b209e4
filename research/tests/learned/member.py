"""A process started by `torchrun`: ``member.py JOBS``, a JSON file with [[labels, recipe, folder], ...]."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from vidkin_research.learned.recipes import load_shot_recipe, shot_method_of
from vidkin_research.learned.train import train_shots

torch.set_num_threads(1)
for labels, recipe, folder in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
    plan = load_shot_recipe(recipe)
    (shot_method_of(plan).train or train_shots)(labels, plan, output=folder)
