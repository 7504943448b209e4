"""A comparator on the command line: index, search, match and duplicates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run
from tests.support.comparators import passing
from vidkin.index import LearnedScale
from vidkin.models import ComparatorConfig, save_comparator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparator over the shipped encoder."""
    config = ComparatorConfig(unrelated=(0.0, 0.5), temporal_span=7)
    return save_comparator(passing(config), tmp_path_factory.mktemp("comparator"))


@pytest.mark.large
def test_a_comparator_indexes_searches_matches_and_finds_duplicates_where_its_scale_is_known(
    library: Library, model: Path, tmp_path: Path
) -> None:
    index = tmp_path / "collection.vidkin"
    run("index", library.folder, "--model", model, "--index", index, "--workers", "1")
    found = run("search", library.clip, "--index", index, "-f", "json").json
    assert found["measure"] == "learned"
    first, second = found["matches"][:2]
    assert {Path(first["path"]).name, Path(second["path"]).name} == {"coffee.mp4", "copy of coffee.mp4"}
    assert first["segments"][0]["target_start"] == pytest.approx(4.0, abs=1.0)
    assert first["segments"][0]["target_end"] == pytest.approx(9.0, abs=1.0)
    assert all(match["score"] < 0.2 for match in found["matches"][2:])

    shared = run("search", library.clip, "--index", index, "--model", f"{model}?temporal_share=.5", "-f", "json").json
    # The best score may be 1 both ways, so the scores of all videos are compared.
    scores = [[match["score"] for match in each["matches"]] for each in (found, shared)]
    assert scores[0] != scores[1]

    refused = run("duplicates", "--index", index, status=2)
    assert "too few to calibrate the model's scores" in " ".join(refused.err.split())
    # As if it had been measured on twelve videos that share nothing.
    scale = index / LearnedScale.FILE
    scale.write_text(json.dumps(json.loads(scale.read_text()) | {"videos": 12, "pairs": 66, "highest": 0.1}))
    groups = run("duplicates", "--index", index, "-f", "json").json["groups"]
    names = [{Path(member["path"]).name for member in group["members"]} for group in groups]
    assert names == [{"coffee.mp4", "copy of coffee.mp4"}]


def test_search_names_the_kind_of_score(library: Library, model: Path) -> None:
    outcome = run("match", library.clip, library.folder / "rocket.mp4", "--model", model)
    assert "score 0." in outcome.out
    assert "No segment of the query" in outcome.out
