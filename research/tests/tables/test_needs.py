"""Requirements of a table can be computed without data, weights or a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.models import EncoderConfig
from vidkin_research.tables import PAPER_TABLES, PaperTable, TableOptions, paper_table, table_needs
from vidkin_research.tables.needs import StepCost, Workload, cost_of_step, hours_of

SMALL = EncoderConfig(kind="image", backbone="small", size=64, hidden=32, trainable="all")


def test_operations_are_counted_as_published() -> None:
    # Convolutions of 3 x 3: inputs, outputs, and side length of the map.
    layers = ((3, 24, 32), (24, 48, 16), (48, 96, 8), (96, 128, 4), (128, 128, 4), (128, 128, 4))
    multiplications = sum(9 * before * after * side**2 for before, after, side in layers)
    cost = cost_of_step(SMALL, items=4)
    # A multiplication and an addition; a forward pass and a backward pass that costs twice as much.
    assert cost.operations == pytest.approx(3 * 4 * 2 * multiplications, rel=0.01)
    assert cost_of_step(SMALL, items=8).operations == pytest.approx(2 * cost.operations)
    # A frozen backbone only has forward passes.
    assert cost_of_step(replace(SMALL, trainable="head"), items=4).operations == pytest.approx(cost.operations / 3)
    assert cost_of_step(SMALL, items=64).gib > cost.gib > 0


def test_hours_are_limited_by_the_slower_of_device_and_cores() -> None:
    load = Workload(what="x", runs=2, steps=1800, cost=StepCost(operations=1e9, gib=0.0), core_seconds=4.0)
    assert hours_of([load], speed=1e9, cores=2) == pytest.approx(2.0)
    assert hours_of([load], speed=1e9, cores=8) == pytest.approx(1.0)
    assert hours_of([load, load], speed=1e9, cores=8) == pytest.approx(2.0)


@pytest.mark.parametrize("table", PAPER_TABLES, ids=lambda table: table.name)
def test_every_table_lists_its_requirements_without_data(table: PaperTable) -> None:
    needs = table_needs(table, TableOptions(reduced=True))
    assert needs.data
    assert needs.missing is None
    assert needs.work
    assert needs.hours > 0
    assert needs.memory_gib > 0
    assert needs.source == table.source


@pytest.mark.slow
@pytest.mark.parametrize("table", PAPER_TABLES, ids=lambda table: table.name)
def test_every_table_lists_its_requirements_at_its_published_size(table: PaperTable) -> None:
    needs = table_needs(table, TableOptions(), elsewhere=True)
    assert needs.hours > table_needs(table, TableOptions(reduced=True, device="cpu")).hours / 1000
    assert needs.device_gib > 0.5


def test_names_are_unique_and_unknown_names_are_rejected() -> None:
    assert len({table.name for table in PAPER_TABLES}) == len(PAPER_TABLES)
    with pytest.raises(InvalidArgumentError, match=r"a table must be one of radial-videos, .*, got 'x'"):
        paper_table("x")
    with pytest.raises(InvalidArgumentError, match="the backbone of table hap-k cannot be changed, got 'small'"):
        table_needs(paper_table("hap-k"), TableOptions(backbone="small", reduced=True))


def test_published_sets_can_be_selected() -> None:
    needs = table_needs(paper_table("two-heads"), TableOptions(reduced=True, sets=("dogs", "nabirds")))
    assert [need.path for need in needs.data] == ["dogs", "nabirds"]
    assert "120 dog breeds: 20,580 items" in needs.data[0].what
