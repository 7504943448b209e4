"""The stored results on critical clips name the commit of the detection rule, and the page notes a difference."""

from __future__ import annotations

import json
import re
from pathlib import Path

from vidkin_research.critical.study import RULE_FILES, rule_answers
from vidkin_research.runs import commit_of

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "research" / "results"


def test_stored_result_names_the_commit_of_its_rule_and_page_notes_a_difference() -> None:
    rule = json.loads((RESULTS / "critical.json").read_text(encoding="utf-8"))["settings"]["rule"]
    page = (RESULTS / "critical.md").read_text(encoding="utf-8")
    assert re.fullmatch(r"[0-9a-f]{8,40}", rule["commit"])
    if rule["answers"] != rule_answers():
        assert f"of an earlier rule** (commit {rule['commit']}" in page, "run `vidkin benchmark critical` again"


def test_rule_is_deterministic_and_distinguishes_rising_curves() -> None:
    answers = rule_answers()
    assert answers == rule_answers()
    # Every second curve rises, later ones more.
    assert min(answers[7::2]) > 0.5 > max(answers[8::2])


def test_rule_has_a_commit_in_a_git_clone() -> None:
    assert all((ROOT / file).is_file() for file in RULE_FILES)
    commit = commit_of(*RULE_FILES)
    assert commit is None or re.fullmatch(r"[0-9a-f]{7,40}\+?", commit)
    assert commit_of("no/such/file") is None
