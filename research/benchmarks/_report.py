"""Shared by metric_losses.py and metric_scores.py: options, comparison output and exit status."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _measure import Measurement, machine

MOST_MIB = 1024
Pairs = dict[str, dict[str, Measurement]]


def options(description: str | None) -> argparse.Namespace:
    """Parse ``--output``, ``--sizes`` and ``--skip-package``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 2048], help="batch sizes")
    parser.add_argument("--skip-package", action="store_true", help="skip the comparison with pytorch-metric-learning")
    return parser.parse_args()


def finish(
    rows: list[dict[str, Any]],
    pairs: Pairs,
    missed: Callable[[str, dict[str, Any]], list[str]],
    output: Path | None,
) -> int:
    """Print comparisons and missed targets, write the report, and return the exit status.

    Args:
        rows: Results of each loss, by batch size.
        pairs: Measurements of vidkin and of one alternative, by comparison name.
        missed: Function that takes name and results of a comparison and lists the targets it missed.
        output: JSON file for the report.
    """
    comparisons = {name: print_pair(name, pair) for name, pair in pairs.items()}
    targets = [
        f"{row['loss']} takes {row['2048']['peak_mib']:.0f} MiB at N=2048; the target is at most {MOST_MIB}"
        for row in rows
        if "2048" in row and row["2048"]["peak_mib"] > MOST_MIB
    ]
    for name, pair in comparisons.items():
        targets += missed(name, pair)
    print("\n" + ("\n".join(targets) or "all targets met"))
    if output:
        report = {"machine": machine(), "losses": rows, "comparisons": comparisons, "missed": targets}
        output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if targets else 0


def values_differ(pair: dict[str, Any]) -> bool:
    """Whether the two values of a comparison differ by more than rounding error."""
    return bool(pair["difference"] > 1e-5 * max(1.0, abs(pair["vidkin"]["value"])))


def print_pair(name: str, pair: dict[str, Measurement]) -> dict[str, Any]:
    """Print a comparison of two implementations, and return it with its ratios."""
    (_, own), (other_name, other) = pair.items()
    faster, smaller = other.seconds / own.seconds, other.peak_mib / own.peak_mib
    print(f"\n{name}")
    for who, found in pair.items():
        print(f"  {who:16s} {found.value:.7f}  {found.seconds:9.4f} s {found.peak_mib:9.1f} MiB")
    print(f"  {faster:.1f} times faster, {smaller:.1f} times smaller", flush=True)
    return {
        **{who: asdict(found) for who, found in pair.items()},
        "against": other_name,
        "faster": faster,
        "smaller": smaller,
        "difference": abs(own.value - other.value),
    }
