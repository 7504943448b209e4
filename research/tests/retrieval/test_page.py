"""Means, verdicts and the page, with values that can be computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from vidkin_research.retrieval import ComparisonPlan, ComparisonRun, Summary, as_page, summarize

QP = {
    # method: QP of three seeds at the common rate
    "backbone": [50.0],
    "triplet": [60.0, 62.0, 64.0],
    "quadruplet1": [88.0, 90.0, 92.0],
    "quadlet": [70.0, 71.0, 72.0],
    "radial": [30.0, 40.0, 50.0],
    "radial_detached": [80.0, 80.0, 80.0],
    "all_quadlets": [83.0, 84.0, 85.0],
    "hierarchical_ap": [90.0, 90.0, 90.0],
}


def run_of(method: str, seed: int, qp: float, *, rate: float = 1e-3, validation: float | None = None) -> ComparisonRun:
    names = ("qp", "qp_sampled", "tp", "ndcg", "map", "map_subcategory", "recall_at_1")
    geometry = {
        "order_inside": 90.0,
        "order_across": 80.0,
        "distance_positive": 0.25,
        "distance_intermediate": 0.5,
        "distance_negative": 1.5,
        "unreachable": 7.0,
    }
    return ComparisonRun(
        set="fruit",
        method=method,
        seed=seed,
        learning_rate=0.0 if method == "backbone" else rate,
        validation={"qp": qp if validation is None else validation},
        test=dict.fromkeys(names, qp) | {"qp_gallery": qp - 5.0, "tp_gallery": qp - 4.0} | geometry,
        training={"distance": 0.1, "seconds": 2.0},
        collapsed=method == "radial",
        ranked={},
    )


@pytest.fixture
def plan() -> ComparisonPlan:
    return ComparisonPlan(sets=("fruit", "strokes"), learning_rates=(1e-3,))


@pytest.fixture
def runs() -> list[ComparisonRun]:
    found = [run_of(name, seed, qp) for name, values in QP.items() for seed, qp in enumerate(values)]
    # On validation all_quadlets is better, although hierarchical_ap is better on the test set.
    return [
        run_of(run.method, run.seed, run.test["qp"], validation=95.0) if run.method == "all_quadlets" else run
        for run in found
    ]


@pytest.fixture
def summary(plan: ComparisonPlan, runs: list[ComparisonRun]) -> Summary:
    (found,) = summarize(runs, plan)
    return found


def test_rows_are_means_and_deviations_over_seeds(summary: Summary) -> None:
    by_name = {row.method: row for row in summary.common}
    assert list(by_name) == list(QP)  # in the order of the methods
    assert by_name["triplet"].mean["qp"] == 62.0
    assert by_name["triplet"].deviation["qp"] == pytest.approx(2.0)
    assert by_name["backbone"].deviation["qp"] == 0.0
    assert by_name["backbone"].seeds == 1
    assert by_name["radial"].collapsed == 3
    assert summary.chosen == ()
    assert summary.video


def test_verdict_equals_a_hand_computed_one(summary: Summary) -> None:
    verdict = summary.verdict
    assert verdict.radial_over_triplet == 18.0
    assert verdict.needed == pytest.approx(2 * math.sqrt(2.0**2 + 0.0**2))
    assert verdict.ours == "all_quadlets"  # by validation, not by test
    assert verdict.ours_over_radial == pytest.approx(4.0)
    # Published: triplet, quadruplet1, quadlet, radial. Here: triplet, quadlet, radial, quadruplet1.
    # Rank differences 0, 2, -1, -1: 1 - 6 * 6 / (4 * 15).
    assert verdict.order == pytest.approx(0.4)
    assert verdict.reversed_pairs == (
        ("Quadruplet-1", "Quadlet"),
        ("Quadruplet-1", "Radial, no gradient through R"),
    )


def test_rate_of_every_method_is_tuned_on_validation(plan: ComparisonPlan, runs: list[ComparisonRun]) -> None:
    slow = [run_of("radial", seed, 75.0, rate=1e-4) for seed in range(3)]
    tried = [run_of(name, 0, 10.0, rate=1e-4) for name in QP if name not in ("radial", "backbone")]
    both = ComparisonPlan(sets=("fruit",), learning_rates=(1e-3, 1e-4))
    (found,) = summarize([*runs, *slow, *tried], both)
    common = {row.method: row for row in found.common}
    chosen = {row.method: row for row in found.chosen}
    assert common["radial"].mean["qp"] == 40.0
    assert chosen["radial"].mean["qp"] == 75.0
    assert chosen["radial"].learning_rate == 1e-4
    assert chosen["triplet"] == common["triplet"]


def test_few_methods_have_no_verdict(plan: ComparisonPlan) -> None:
    (found,) = summarize([run_of("triplet", 0, 60.0)], plan)
    verdict = found.verdict
    assert verdict.radial_over_triplet is verdict.ours is verdict.ours_over_radial is verdict.order is None


def test_page_states_the_findings(plan: ComparisonPlan, summary: Summary) -> None:
    page = as_page([summary], plan, title="Fine-grained video retrieval", machine="A machine.")
    assert page.startswith("# Fine-grained video retrieval\n")
    assert "| Triplet | 62.0 +- 2.0 | 62.0 +- 2.0 |" in page
    assert "**90.0 +- 2.0**" in page  # the best QP; hierarchical AP is equally good
    assert "Radial (no gradient through R) minus Triplet: +18.0 points of QP, more than two" in page
    assert "Our best method on the validation split: All quadlets of a batch; +4.0 points of QP" in page
    assert "Collapse warning: Radial, published gradient at rate 0.001, 3 of 3 runs; mean pairwise distance" in page
    assert "| Triplet | 62.0 | 90.0 | 80.0 | 0.25 | 0.50 | 1.50 | 7 |" in page  # the order components of QP
    assert "A machine." in page
    # Both protocols have a name and a column, and the headline result is for test quadlets.
    assert "*Test quadlets*, the protocol of the paper" in page
    assert "| MAP subcategory | R@1 | QP gallery | TP gallery | validation QP |" in page
    assert "| 62.0 +- 2.0 | 57.0 +- 2.0 | 58.0 +- 2.0 | 62.0 |" in page
    assert "3D-CNN is reduced" in page
    assert "each step uses 10 consecutive frames at 8 per second, from a random position" in page
    assert "0.125 of the published width, 32 x 32 pixels, 16 items per step (other methods: 128)" in page
    assert "500 steps of 32 quadlets" in page


def test_page_states_the_result_on_our_claim(plan: ComparisonPlan, runs: list[ComparisonRun]) -> None:
    ours = [run_of("quadlets_and_ap", seed, 96.0) for seed in (0, 1, 2)]
    (summary,) = summarize([*runs, *ours], plan)
    line = next(line for line in as_page([summary], plan, title="T", machine="m").splitlines() if "Claim" in line)
    assert "All quadlets + hierarchical AP is at least 3 points of QP above every published loss." in line
    # Quadruplet-1 has 88, 90 and 92: a standard deviation of 2.
    assert "+6.0 points compared with Quadruplet-1; two standard deviations of the difference are 4.0" in line
    assert "(Softmax, same encoder; Quadruplet-2a; Quadruplet-2b; Angular, quadlet form)." in line
    rest = ("classification", "quadruplet2a", "quadruplet2b", "angular")
    (whole,) = summarize([*runs, *ours, *(run_of(name, 0, 20.0) for name in rest)], plan)
    assert "4.0: holds." in as_page([whole], plan, title="T", machine="m")
    assert "Claim" not in as_page(summarize(runs, plan), plan, title="T", machine="m")


def test_page_lists_only_reductions_of_its_own_comparison(summary: Summary) -> None:
    plan = ComparisonPlan(sets=("fruit",), methods=("triplet",))
    assert "3D-CNN is reduced" not in as_page([summary], plan, title="T", machine="M")


def test_gallery_quadlets_are_used_if_validation_has_no_test_quadlets() -> None:
    run = run_of("triplet", 0, 60.0)
    assert run.choice == 60.0
    assert replace(run, validation={"qp": math.nan, "qp_gallery": 40.0}).choice == 40.0


def test_metric_without_cases_is_omitted(plan: ComparisonPlan) -> None:
    run = run_of("triplet", 0, 60.0)
    (found,) = summarize([replace(run, test=run.test | {"tp": math.nan})], plan)
    assert "| Triplet | **60.0** | 60.0 |  | 60.0 |" in as_page([found], plan, title="T", machine="M")
