"""The comparison of the source on labelled collections at hand: every method, several seeds, stored run by run."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.experiments.retrieval.methods import METHODS, Method, method_named
from vidkin.experiments.retrieval.runs import (
    Labelled,
    Run,
    Schedule,
    embedded,
    measure,
    ranked,
    train_method,
)
from vidkin.experiments.retrieval.sets import (
    ComparisonSet,
    collection_key,
    comparison_set,
    frame_features,
    open_set,
    read_pictures,
)
from vidkin.models import Encoder, EncoderConfig, build_model
from vidkin.training.run.output import output_folder

__all__ = ["ComparisonPlan", "chosen_rate", "picture_queries", "read_runs", "run_comparison"]

PathLike = str | os.PathLike[str]
OnProgress = Callable[[str, float], None]

_LOG = logging.getLogger(__name__)
# Part of the protocol: a run that was stored before something was measured has to be made again.
_MEASURED = "orders and distances"
_PICTURE_QUERIES = 4
_PICTURE_RESULTS = 10
_VOLUME_SIZE = 32
_VOLUME_WIDTH = 0.125


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """What is compared. Every method gets the same frozen features, head, steps, items a step and trials of rates.

    Attributes:
        sets: Names of collections, see `COMPARISON_SETS`.
        methods: Names of methods, see `METHODS`; 3D-CNN is left out for pictures.
        seeds: Of weights and draws.
        schedule: Steps and so on; its learning rate is not looked at.
        learning_rates: All seeds are run at the first. The first seed is also run at the others, the best one by QP of
            the validation part is chosen, and all seeds are run at that.
        backbone: The frozen frame network.
        hidden: Units of the fully connected layer.
        units: Units of the LSTM (of pictures: of a second layer), the length of an embedding.
        frames: Frames of a clip.

    Raises:
        InvalidArgumentError: A name is unknown, or there is no seed, set, method or learning rate.
    """

    sets: tuple[str, ...]
    methods: tuple[str, ...] = tuple(method.name for method in METHODS)
    seeds: tuple[int, ...] = (0, 1, 2)
    schedule: Schedule = field(default_factory=Schedule)
    learning_rates: tuple[float, ...] = (1e-3, 3e-3, 3e-4, 1e-4)
    backbone: str = "timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5"
    hidden: int = 128
    units: int = 128
    frames: int = 10

    def __post_init__(self) -> None:
        for name in self.sets:
            comparison_set(name)
        for name in self.methods:
            method_named(name)
        for what in ("sets", "methods", "seeds", "learning_rates"):
            if not getattr(self, what):
                raise InvalidArgumentError(f"a comparison needs {what}, none are given")
            given = getattr(self, what)
            if len(set(given)) < len(given):
                # Each would count as one more training.
                raise InvalidArgumentError(f"{what} are {', '.join(map(str, given))}: one is given twice")
        for rate in self.learning_rates:
            if not (rate > 0 and math.isfinite(rate)):
                raise InvalidArgumentError(f"a learning rate is {rate}, allowed is a number above 0")

    def protocol(self) -> str:
        """A name for all settings that change the result of a run, so that stored runs of others are not mixed in."""
        schedule = asdict(replace(self.schedule, learning_rate=0.0))
        parts = [_MEASURED, schedule, self.backbone, self.hidden, self.units, self.frames]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def run_comparison(
    plan: ComparisonPlan,
    data: PathLike,
    *,
    weights: PathLike | None = None,
    output: PathLike,
    on_progress: OnProgress | None = None,
    on_broken: Callable[[MediaError], None] | None = None,
) -> list[Run]:
    """Run what is not stored yet; an interrupted comparison goes on where it was.

    Args:
        plan: What.
        data: Folder of the collections.
        weights: Of the backbone, a safetensors file; None: from the hub's cache or the hub.
        output: Folder for features, runs and the report; may be shared by processes that work on different sets.
        on_progress: Called with a description of what is being done and the share of it that is done, in [0, 1].
        on_broken: Called with what is wrong with an item of an own collection that is left out.

    Returns:
        All runs of the plan.
    """
    folder = output_folder(output)
    found: list[Run] = []
    for name in plan.sets:
        chosen = comparison_set(name)
        labelled = open_set(chosen, data, on_broken=on_broken)
        prepared = _Prepared(plan, chosen, labelled, weights, folder, on_progress)
        for method in (method_named(name) for name in plan.methods):
            if method.input == "pixels" and not chosen.video:
                continue
            found += _runs_of(prepared, method)
    return found


def read_runs(plan: ComparisonPlan, output: PathLike) -> list[Run]:
    """The stored runs of a plan, in the order of its sets and methods; fewer where it is not finished.

    Of a set whose folder was changed in between, those on the data that were used last.
    """
    found = []
    for name in plan.sets:
        paths = sorted((Path(output) / "runs" / name).glob("*.json"))
        loaded = [_read_run(path) for path in paths]
        kept = [
            (path.stat().st_mtime_ns, data, run)
            for path, (protocol, data, run) in zip(paths, loaded, strict=True)
            if protocol == plan.protocol() and run.method in plan.methods
        ]
        last = max(kept, key=lambda entry: entry[0])[1] if kept else None
        found += [run for _, data, run in kept if data == last]
    places = {name: place for place, name in enumerate(plan.methods)}
    return sorted(found, key=lambda run: (plan.sets.index(run.set), places[run.method]))


def chosen_rate(runs: list[Run], plan: ComparisonPlan) -> float:
    """The learning rate at which the first seed has the best QP on the validation part; the earlier one on a tie."""
    trials = [run for run in runs if run.seed == plan.seeds[0]]
    best = max(trials, key=lambda run: (run.validation["qp"], -_place(plan, run.learning_rate)))
    return best.learning_rate


def picture_queries(labelled: LabelledSet) -> list[int]:
    """Numbers of the test items that the picture shows: spread evenly, so that nobody picked them."""
    count = len(labelled.part("test"))
    step = count / _PICTURE_QUERIES
    return sorted({int((place + 0.5) * step) for place in range(_PICTURE_QUERIES)})


class _Prepared:
    """A collection, ready for training: encoder configuration, features and labels of its three parts."""

    def __init__(
        self,
        plan: ComparisonPlan,
        chosen: ComparisonSet,
        labelled: LabelledSet,
        weights: PathLike | None,
        folder: Path,
        on_progress: OnProgress | None,
    ) -> None:
        self.plan, self.chosen, self.labelled, self.folder = plan, chosen, labelled, folder
        self.on_progress = on_progress
        self.weights = weights
        self.config = EncoderConfig(
            kind="clip" if chosen.video else "image",
            backbone=plan.backbone,
            trainable="head",
            hidden=plan.hidden,
            lstm=plan.units,
            embedding=0 if chosen.video else plan.units,
            frames=plan.frames,
            size=chosen.size,
        )
        # One frozen backbone serves all runs; each of them builds only its head anew.
        self.encoder = build_model(self.config, weights=weights)
        self.key = collection_key(self.encoder, labelled)
        coarse, fine = labelled.labels()
        self.labels = torch.stack([torch.from_numpy(coarse), torch.from_numpy(fine)], dim=1)
        self.splits = [item.split for item in labelled.items]
        self._features: Tensor | None = None
        self._volumes: Tensor | None = None

    def parts(self, *, pixels: bool = False) -> dict[str, Labelled]:
        everything = Labelled(self._pixels() if pixels else self._frame_features(), self.labels)
        return {
            split: everything.part(
                torch.tensor([place for place, own in enumerate(self.splits) if own == split])
            )
            for split in ("train", "validation", "test")
        }

    def new_encoder(self, method: Method, seed: int) -> Encoder:
        """C3D, or the shared backbone with a fresh head."""
        if method.input == "pixels":
            config = EncoderConfig(
                kind="c3d",
                width=_VOLUME_WIDTH,
                batch_norm=True,
                classes=len(self.labelled.subcategories()),
                frames=self.plan.frames,
                size=_VOLUME_SIZE,
            )
            return build_model(config, seed=seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            _reset(self.encoder)
        return self.encoder.train()

    def tell(self, text: str, share: float) -> None:
        if self.on_progress is not None:
            self.on_progress(f"{self.chosen.name}: {text}", share)

    def _frame_features(self) -> Tensor:
        if self._features is None:
            self._features = frame_features(
                self.encoder,
                self.labelled,
                cache=self.folder / "features",
                on_item=lambda done, count: self.tell("frame features", done / count),
            )
        return self._features

    def _pixels(self) -> Tensor:
        if self._volumes is None:
            self._volumes = read_pictures(
                self.labelled,
                size=_VOLUME_SIZE,
                frames=self.plan.frames,
                on_item=lambda done, count: self.tell("frames", done / count),
            )
        return self._volumes


def _runs_of(prepared: _Prepared, method: Method) -> Iterator[Run]:
    plan = prepared.plan
    if not method.objectives:
        for seed in plan.seeds if method.name == "untrained" else plan.seeds[:1]:
            yield _stored_or_run(prepared, method, seed, 0.0)
        return
    first = [_stored_or_run(prepared, method, plan.seeds[0], rate) for rate in plan.learning_rates]
    yield from first
    # The common rate for everyone, and the one that the validation part chose: often the same.
    for rate in dict.fromkeys((plan.learning_rates[0], chosen_rate(first, plan))):
        for seed in plan.seeds[1:]:
            yield _stored_or_run(prepared, method, seed, rate)


def _stored_or_run(prepared: _Prepared, method: Method, seed: int, rate: float) -> Run:
    plan = prepared.plan
    path = prepared.folder / "runs" / prepared.chosen.name / f"{method.name}-{rate:g}-{seed}.json"
    if path.is_file():
        protocol, data, stored = _read_run(path)
        # Runs of public collections were stored without a word about their data for a while.
        same = data == prepared.key or (data is None and prepared.chosen.folder)
        if protocol == plan.protocol() and same:
            return stored
    run = _run(prepared, method, seed, rate)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    told = {"protocol": plan.protocol(), "data": prepared.key, **run.to_mapping()}
    part.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
    return run


def _read_run(path: Path) -> tuple[str, str | None, Run]:
    """(protocol, key of the data, run) of a stored run."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return stored.pop("protocol"), stored.pop("data", None), Run(**stored)


def _run(prepared: _Prepared, method: Method, seed: int, rate: float) -> Run:
    schedule = replace(prepared.plan.schedule, learning_rate=rate)
    parts = prepared.parts(pixels=method.input == "pixels")
    model = prepared.new_encoder(method, seed)
    what = f"{method.title}, seed {seed}" + (f", rate {rate:g}" if rate else "")
    prepared.tell(what, 0.0)
    training = train_method(
        model,
        method,
        parts["train"],
        schedule,
        seed=seed,
        on_step=lambda step, _: prepared.tell(what, step / schedule.steps),
    )
    if training.collapsed:
        _LOG.warning(
            "%s: %s collapsed: the mean distance of embeddings fell from %.2f to %.2f",
            prepared.chosen.name,
            what,
            training.distance_before,
            training.distance,
        )
    plain = method.input == "frozen"
    embeddings = {
        split: _pooled(part.inputs) if plain else embedded(model, part.inputs)
        for split, part in parts.items()
    }
    measures = {
        split: measure(embeddings[split], parts[split].labels, embeddings["train"], parts["train"].labels)
        for split in ("validation", "test")
    }
    shown = picture_queries(prepared.labelled)
    nearest = ranked(embeddings["test"][shown], embeddings["train"], count=_PICTURE_RESULTS)
    return Run(
        set=prepared.chosen.name,
        method=method.name,
        seed=seed,
        learning_rate=rate,
        validation=measures["validation"],
        test=measures["test"],
        training=asdict(training),
        collapsed=training.collapsed and not plain,
        ranked={str(number): row for number, row in zip(shown, nearest, strict=True)},
    )


def _reset(encoder: Encoder) -> None:
    """Fresh weights for the head, as :func:`vidkin.models.build_model` makes them."""
    for name, part in encoder.named_children():
        if name == "backbone":
            continue
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)
        elif isinstance(part, nn.LSTM):
            part.reset_parameters()


def _pooled(features: Tensor) -> Tensor:
    means = features.mean(dim=1) if features.ndim == 3 else features
    return nn.functional.normalize(means, dim=-1)


def _place(plan: ComparisonPlan, rate: float) -> int:
    return plan.learning_rates.index(rate) if rate in plan.learning_rates else 0
