"""``--model``: a trained model in `index`, `search`, `match` and `embed`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors import safe_open

from tests.cli.conftest import run
from tests.support.kinds import Kinds, make_kinds

pytestmark = pytest.mark.large


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Kinds:
    return make_kinds(tmp_path_factory.mktemp("kinds"))


def test_index_and_search_with_a_model(kinds: Kinds, tmp_path: Path) -> None:
    index = tmp_path / "c.vidkin"
    made = run("index", kinds.gallery, "--model", kinds.model, "--index", index, "--workers", "1", "-f", "json").json
    assert made["added"] == 8
    query = kinds.queries / "cold/cyan/2.mp4"
    found = run("search", query, "--index", index, "-f", "json").json
    assert found["measure"] == "kinds"
    assert [kinds.relevance(query, match["path"]) for match in found["matches"]] == [2, 2, 1, 1, 0, 0, 0, 0]
    again = run("search", query, "--index", index, "--model", kinds.model, "-f", "json").json
    assert again["matches"] == found["matches"]
    shown = run("search", query, "--index", index, "-n", "2")
    assert "Scores are specific to this model: only their order is meaningful" in shown.err
    assert "unrelated" not in shown.err
    info = run("info", "--index", index)
    assert "model:" in info.out
    assert "kinds" in info.out
    refused = run("duplicates", "--index", index, status=2)
    assert "create another index with --extractor classical" in refused.err


def test_doctor_misses_a_model_that_has_moved(kinds: Kinds, tmp_path: Path) -> None:
    index, model = tmp_path / "c.vidkin", tmp_path / "model"
    shutil.copytree(kinds.model, model)
    query = kinds.queries / "cold/cyan/2.mp4"
    run("index", query, "--model", model, "--index", index, "--workers", "1")
    part = run("doctor", "--index", index, "-f", "json").json["parts"][-1]
    assert (part["name"], part["state"]) == ("model of the index", "ok")
    assert part["detail"].startswith("model-clip-")
    model.rename(tmp_path / "elsewhere")
    part = run("doctor", "--index", index, "-f", "json", status=1).json["parts"][-1]
    assert part["state"] == "broken"
    assert "if it has moved, specify its new location" in part["detail"]


def test_match_with_a_model(kinds: Kinds, tmp_path: Path) -> None:
    red, yellow, blue = (kinds.queries / f"{name}/2.mp4" for name in ("warm/red", "warm/yellow", "cold/blue"))
    index = tmp_path / "none.vidkin"
    scores = [
        run("match", red, other, "--model", kinds.model, "--index", index, "-f", "json").json
        for other in (red, yellow, blue)
    ]
    assert [found["measure"] for found in scores] == ["kinds"] * 3
    assert scores[0]["score"] > scores[1]["score"] > scores[2]["score"]
    shown = run("match", red, yellow, "--model", kinds.model, "--index", index)
    assert "Scores are specific to this model: higher means more of the same kind" in shown.err


def test_embed_with_a_model(kinds: Kinds, tmp_path: Path) -> None:
    output = tmp_path / "features.safetensors"
    query = kinds.queries / "warm/red/2.mp4"
    made = run("embed", query, "--model", kinds.model, "--output", output, "-f", "json").json
    assert [(item["frames"], item["regions"], item["dimension"]) for item in made["videos"]] == [(1, 1, 8)]
    with safe_open(output, "pt") as file:
        assert file.get_tensor("timestamps").tolist() == pytest.approx([1.0])


@pytest.mark.parametrize("command", [("index", "."), ("match", "a", "b"), ("embed", "a", "--output", "o.safetensors")])
def test_model_and_extractor_exclude_each_other(command: tuple[str, ...], kinds: Kinds) -> None:
    video = kinds.queries / "cold/cyan/2.mp4"
    words = [str(video) if word in ("a", "b") else word for word in command]
    outcome = run(*words, "--model", kinds.model, "--extractor", "classical", status=2)
    assert "use --model or --extractor, not both" in " ".join(outcome.err.split())


def test_a_folder_that_holds_no_model(kinds: Kinds, tmp_path: Path) -> None:
    outcome = run("index", kinds.gallery, "--model", tmp_path, "--index", tmp_path / "i.vidkin", status=2)
    assert "contains no model" in outcome.err
