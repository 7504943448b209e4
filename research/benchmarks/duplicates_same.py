"""Compare the duplicate groups found by two versions, from the output of `vidkin duplicates --format json`.

    python research/benchmarks/duplicates_same.py BEFORE.json AFTER.json

The output lists pairs of files grouped only before or only after, best files and removable files that differ, and files
described differently. Files grouped by only one version appear in the pairs. The exit status is 1 if pairs, best files
or removable files differ, but not if only descriptions do.
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path
from typing import Any

from vidkin.index.duplicates.differences import Difference
from vidkin.rendering.duplicates import describe_difference


def main() -> None:
    """Compare and print; the exit status tells whether the groups are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="JSON output of the earlier version")
    parser.add_argument("after", type=Path, help="JSON output of the later version")
    given = parser.parse_args()
    before, after = (json.loads(path.read_text(encoding="utf-8"))["groups"] for path in (given.before, given.after))
    found = compare(before, after)
    print(f"{len(before)} groups before, {len(after)} after")
    for what, lines in found.items():
        print(f"{what}: {len(lines)}", *lines, sep="\n  ")
    raise SystemExit(any(lines for what, lines in found.items() if what != "words"))


def compare(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return all differences by kind, one line each; files are given by name."""
    pairs = [{pair for group in groups for pair in pairs_of(group)} for groups in (before, after)]
    kept, spare, words = ([side(groups) for groups in (before, after)] for side in (kept_files, spare_files, words_of))
    both = words[0].keys() & words[1].keys()
    return {
        "pairs only before": [" + ".join(pair) for pair in sorted(pairs[0] - pairs[1])],
        "pairs only after": [" + ".join(pair) for pair in sorted(pairs[1] - pairs[0])],
        "kept only before": sorted(kept[0] - kept[1]),
        "kept only after": sorted(kept[1] - kept[0]),
        "removable only before": sorted(spare[0] - spare[1]),
        "removable only after": sorted(spare[1] - spare[0]),
        "words": [f"{name}: {words[0][name]} -> {words[1][name]}" for name in sorted(both)
                  if words[0][name] != words[1][name]],
    }  # fmt: skip


def pairs_of(group: dict[str, Any]) -> list[tuple[str, ...]]:
    """Pairs of files in the same group."""
    return list(combinations(sorted(member["path"] for member in group["members"]), 2))


def kept_files(groups: list[dict[str, Any]]) -> set[str]:
    """The best file of each group."""
    return {member["path"] for group in groups for member in group["members"] if member["best"]}


def spare_files(groups: list[dict[str, Any]]) -> set[str]:
    """Removable files."""
    return {member["path"] for group in groups for member in group["members"] if member["is_spare"]}


def words_of(groups: list[dict[str, Any]]) -> dict[str, str]:
    """Kind of copy and doubts of each file."""
    return {
        member["path"]: ", ".join(
            [*(str(each) for each in format_differences(member)), *filter(None, [member["doubt"]])]
        )
        for group in groups
        for member in group["members"]
    }


def format_differences(member: dict[str, Any]) -> list[str]:
    """Format the differences of a file."""
    return [describe_difference(Difference(**each)) for each in member.get("differences", [])]


if __name__ == "__main__":
    main()
