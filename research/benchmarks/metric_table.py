"""Write a table of all losses from the results of metric_losses.py and metric_scores.py.

python research/benchmarks/metric_table.py research/results research/losses.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    results, page = Path(sys.argv[1]), Path(sys.argv[2])
    lines = [
        "# Losses",
        "",
        "All losses of `vidkin.metric.losses`. Seconds and peak MiB are forward and backward at N = 512 and N = 2048",
        "(classes of 4, D = 128, one thread), from `python research/benchmarks/metric_losses.py` and "
        "`metric_scores.py`;",
        "`python research/benchmarks/metric_table.py` writes this page. Tuple losses take tuples of embeddings, mined "
        "ones",
        "embeddings with labels, the rest scores with relevance. A dash: no public system that we know of has it.",
    ]
    for name, title in (
        ("metric_losses", "On embeddings"),
        ("metric_scores", "On scores with relevance"),
    ):
        report: dict[str, Any] = json.loads((results / f"{name}.json").read_text())
        machine = ", ".join(f"{part} {value}" for part, value in report.get("machine", {}).items())
        lines += ["", f"## {title}", "", f"Measured with {machine}.", ""]
        lines += ["| loss | formula | source | cost | N=512 | N=2048 | also in |", "|---" * 7 + "|"]
        for row in report["losses"]:
            figures = [f"{row[size]['seconds']:.3g} s, {row[size]['peak_mib']:.0f}" for size in ("512", "2048")]
            cells = [row["loss"], f"`{row['formula'].replace('|', chr(92) + '|')}`", row["source"]]
            lines.append("| " + " | ".join([*cells, row["complexity"], *figures, row["systems"]]) + " |")
    page.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
