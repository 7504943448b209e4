"""Batch sampler with a fixed number of classes and of items per class, for any number of label levels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from vidkin._base.arguments import check_constructor
from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.tuples import epoch_generator


@check_constructor
class BalancedBatchSampler:
    """P x K batches: P classes, K items each; with two label levels, P categories, S subcategories each, K items each.

    Classes are dealt from a deck that is reshuffled when it is used up; the same applies to the subcategories of a
    category and the items of a class. Over an epoch, every class therefore appears equally often (plus or minus one),
    regardless of its size, and so does every item within a class: uniform over classes, as for the two-head
    classifier, but guaranteed.

    *Coverage*: with ``batches=None``, an epoch is just long enough for every item to appear at least once (over all
    ranks together). Items of small classes repeat.

    Batches are deterministic for a given (seed, epoch). With a ``world_size`` of W, rank r gets the batches r, r+W, ...
    of the sequence that all ranks share; every rank gets the same number of batches.

    Args:
        labels: [N] integers, or [N, L] with the coarsest level first (category, subcategory, ...).
        sizes: Number to sample at each level, items last: ``(P, K)`` for [N], ``(P, S, K)`` for [N, 2].
            The batch size is the product; the two-head classifier uses (8, 4), and quadlets need (P, S, K) of
            at least (2, 2, 2).
        batches: Number of batches per epoch and rank; default: the minimum that covers every item.
        seed: Integer seed.
        rank: Rank of this process.
        world_size: Number of processes.

    Raises:
        InvalidArgumentError: ``sizes`` requires more label levels, or more subclasses of a class, than there are.

    Example:
        >>> import torch
        >>> sampler = BalancedBatchSampler(torch.tensor([0, 0, 0, 1, 1, 2, 2]), sizes=(2, 2), seed=0)
        >>> len(sampler), [len(batch) for batch in sampler]
        (3, [4, 4, 4])
    """

    def __init__(
        self,
        labels: torch.Tensor,
        *,
        sizes: Sequence[int],
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        table = labels.unsqueeze(1) if labels.ndim == 1 else labels
        if table.ndim != 2 or table.is_floating_point() or len(table) == 0:
            raise InvalidArgumentError(
                f"labels must be [N] or [N, L] integers with N of at least 1, got {list(labels.shape)} {labels.dtype}"
            )
        if len(sizes) != table.shape[1] + 1 or min(sizes) < 1:
            raise InvalidArgumentError(
                f"sizes must be {table.shape[1] + 1} numbers of at least 1, one per level of the labels and the items "
                f"last, got {tuple(sizes)}"
            )
        if not 0 <= rank < world_size:
            raise InvalidArgumentError(
                f"rank must be from 0 to world_size - 1, got {rank} with world_size {world_size}"
            )
        if batches is not None:
            check_at_least(1, batches=batches)
        self.sizes = tuple(sizes)
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        self.epoch = 0
        self._tree = _tree(table.detach().long().cpu())
        _check_breadth(self._tree, self.sizes)
        self._batches = math.ceil(_visits(self._tree, self.sizes) / world_size) if batches is None else batches

    @property
    def batch_size(self) -> int:
        """Number of items per batch: the product of ``sizes``."""
        return math.prod(self.sizes)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch for the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[list[int]]:
        generator = epoch_generator(self.seed, self.epoch)
        decks: dict[tuple[int, ...], _Deck] = {}
        for number in range(self._batches * self.world_size):
            batch = self._deal(self._tree, (), decks, generator)
            # Every rank deals all batches, which is cheap, so that the ranks agree without communication.
            if number % self.world_size == self.rank:
                yield batch

    def _deal(
        self,
        node: _Node,
        path: tuple[int, ...],
        decks: dict[tuple[int, ...], _Deck],
        generator: torch.Generator,
    ) -> list[int]:
        size = self.sizes[len(path)]
        deck = decks.get(path)
        if deck is None:
            deck = decks[path] = _Deck(node.items or list(node.children))
        if node.items:
            return deck.deal(size, generator)
        return [
            item
            for name in deck.deal(size, generator)
            for item in self._deal(node.children[name], (*path, name), decks, generator)
        ]


@dataclass(slots=True)
class _Node:
    """A class, with its subclasses by label or, at the finest level, its items."""

    children: dict[int, _Node] = field(default_factory=dict)
    items: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Deck:
    """Cards dealt in shuffled order; the deck is reshuffled after every card has been dealt once."""

    cards: list[int]
    left: list[int] = field(default_factory=list)

    def deal(self, count: int, generator: torch.Generator) -> list[int]:
        """Deal ``count`` cards, all different if there are enough."""
        dealt: list[int] = []
        while len(dealt) < count:
            if not self.left:
                order = torch.randperm(len(self.cards), generator=generator).tolist()
                self.left = [self.cards[position] for position in order]
            taken = set(dealt) if len(self.cards) >= count else set()
            # After reshuffling, the top card may already be in this hand, so deal the first card that is not.
            position = next(i for i, card in enumerate(self.left) if card not in taken)
            dealt.append(self.left.pop(position))
        return dealt


def _tree(table: torch.Tensor) -> _Node:
    root = _Node()
    for item, row in enumerate(table.tolist()):
        node = root
        for label in row:
            node = node.children.setdefault(label, _Node())
        node.items.append(item)
    return root


def _check_breadth(node: _Node, sizes: tuple[int, ...], path: tuple[int, ...] = ()) -> None:
    if node.items:
        return
    if len(node.children) < sizes[0]:
        where = f" of class {path}" if path else ""
        raise InvalidArgumentError(
            f"sizes need {sizes[0]} classes at level {len(path)} of the labels{where}, got {len(node.children)}"
        )
    for label, child in node.children.items():
        _check_breadth(child, sizes[1:], (*path, label))


def _visits(node: _Node, sizes: tuple[int, ...]) -> int:
    """Return the number of deals from a node until each of its items has appeared."""
    if node.items:
        return math.ceil(len(node.items) / sizes[0])
    most = max(_visits(child, sizes[1:]) for child in node.children.values())
    # v visits deal v * size cards, and each of the m cards appears once in every m cards dealt.
    return math.ceil(most * len(node.children) / sizes[0])
