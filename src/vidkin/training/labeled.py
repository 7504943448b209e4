"""Labeled training and validation items of a run, and sampling batches from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import accuracy
from vidkin.models import Encoder, TwoHeadNetwork
from vidkin.training.batch import Batch, Draw, DrawnItems
from vidkin.training.draws import (
    ClusterDraws,
    OnlineSettings,
    check_drawable,
    class_sizes,
    draw_mined_triplets,
    index_stream,
)
from vidkin.training.embedding_measures import measure_one
from vidkin.training.inputs import Inputs, broken_files
from vidkin.training.recipe import Measure, ScheduleRecipe


@dataclass(frozen=True, eq=False)
class LabeledData:
    """Labeled training data; see :class:`vidkin.training.batch.TrainingData`.

    Attributes:
        train: Training items.
        validation: Validation items; None without validation.
        schedule: Batch sizes and seed.
        device: Device of the batches.
        model: Model for sampling that depends on embeddings (``mined``, ``clusters``); None if there is none.
        clusters: State of ``clusters`` sampling, stored in checkpoints; None if it is not used.
        relevance: [N, N] relevance of the training items for online triplets; None: by labels.
    """

    train: Inputs
    validation: Inputs | None
    schedule: ScheduleRecipe
    device: torch.device
    model: Encoder | None = None
    clusters: ClusterDraws | None = None
    relevance: Tensor | None = None

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.train.labelled.name

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """(file, cause) for each item that could not be read."""
        return broken_files([self.train] if self.validation is None else [self.train, self.validation])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch sizes of the schedule, or the defaults (classes, items per class) for a ``two_head`` model."""
        schedule = self.schedule
        if schedule.batch or self.train.config.kind != "two_head":
            return schedule.batch
        return class_sizes(self.train.labels[:, 1], 4 * schedule.quadlets)

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[Batch]:
        """Yield the batches from step ``first``."""
        schedule = self.schedule
        streams: dict[Draw, Iterator[Tensor]] = {
            draw: index_stream(
                draw,
                self.train.labels,
                steps=schedule.steps,
                start=first,
                quadlets=schedule.quadlets,
                # Uniform sampling needs no balanced sizes; by default, the batch size depends on the number of tuples.
                sizes=schedule.batch if draw == "uniform" else self.sizes,
                seed=schedule.seed,
                relevance=self.relevance,
                online=OnlineSettings(schedule.buffer, schedule.relevance_margin, schedule.in_class),
            )
            for draw in draws
            if draw not in ("mined", "clusters")
        }
        for step in range(first, schedule.steps):
            generator = torch.Generator().manual_seed(schedule.seed * 1_000_003 + step)
            draws_of_step = {}
            for draw in draws:
                indices, clusters = self._draw(draw, streams, step, generator)
                inputs, lengths = self.train.take(indices, device=self.device, generator=generator)
                labels = self.train.labels[indices].to(self.device)
                draws_of_step[draw] = DrawnItems(inputs, lengths, labels, self.train.are_features, clusters)
            yield Batch(draws_of_step)

    def _draw(
        self, draw: Draw, streams: Mapping[Draw, Iterator[Tensor]], step: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Sample the indices of a step's items; for ``clusters`` sampling, also return their clusters."""
        if draw in streams:
            return next(streams[draw]), None
        classes, sizes = self.train.labels[:, 1], self.sizes or class_sizes(self.train.labels[:, 1], 32)
        if draw == "clusters":
            assert self.clusters is not None
            indices, clusters = self.clusters.draw(
                self._embed, sizes=(sizes[0], sizes[-1]), step=step, generator=generator
            )
            return indices, clusters.to(self.device)
        items = max(3, math.prod(sizes))
        return draw_mined_triplets(classes, self._embed, items=items, generator=generator), None

    def _embed(self, indices: Tensor) -> Tensor:
        """Compute the unit vectors of training items with the current model."""
        assert self.model is not None
        return self.train.embed(self.model, device=self.device, only=indices)

    def identity(self) -> bytes:
        """Return the names and labels of the training items."""
        keys = [item.key(self.train.labelled.root) for item in self.train.labelled.items]
        listed = json.dumps([keys, self.train.labels.tolist()]).encode()
        return listed if self.relevance is None else listed + self.relevance.numpy().tobytes()

    def check(self, draws: Sequence[Draw], measure: Measure) -> None:
        """Check before the first step that the items support the sampling methods and the validation measure.

        Raises:
            InvalidArgumentError: The items are not sufficient; the message says what is missing.
        """
        check_drawable(self.train.labelled, draws, sizes=self.sizes)
        if self.validation is None or measure in ("accuracy", "macro_accuracy"):
            return
        queries, gallery = torch.zeros(len(self.validation), 1), torch.zeros(len(self.train), 1)
        if math.isnan(measure_one(measure, queries, self.validation.labels, gallery, self.train.labels)):
            # If the first value is NaN, no later value counts as an improvement.
            reason = (
                "contain no quadlet (two items of a subcategory, one of another subcategory, one of another category)"
                if measure in ("qp", "tp")
                else "share no label with a training item"
            )
            raise InvalidArgumentError(
                f"validation.measure {measure!r} is undefined: the {len(self.validation)} validation items {reason}; "
                "choose another measure, for example 'map', which ranks the training items, or increase "
                "data.validation"
            )

    def measure(self, model: Encoder, measure: Measure) -> float:
        """Evaluate a measure on the validation items, in [0, 1]; higher is better."""
        assert self.validation is not None
        if measure in ("accuracy", "macro_accuracy"):
            if not isinstance(model, TwoHeadNetwork):
                raise InvalidArgumentError(
                    f"validation.measure {measure!r} requires a model of kind 'two_head', got {model.config.kind!r}"
                )
            logits = self.validation.outputs(model, device=self.device).logits
            average: Literal["micro", "macro"] = "micro" if measure == "accuracy" else "macro"
            return accuracy(logits, self.validation.labels[:, 1], average=average)
        queries = self.validation.embed(model, device=self.device)
        gallery = queries if measure in ("qp", "tp") else self.train.embed(model, device=self.device)
        return measure_one(measure, queries, self.validation.labels, gallery, self.train.labels)
