"""Options that other packages bring to commands, as the stand-in for them does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run
from vidkin._base.install import install_command
from vidkin.cli.extra_options import mark_optional_value


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the cluster of the stand-in is asked for."""
    import stand_in

    noted: list[str] = []
    monkeypatch.setattr(stand_in.StandInCluster, "asked", noted)
    return noted


@pytest.mark.thorough
def test_an_option_of_another_package_has_a_cluster_describe_and_search(
    library: Library, tmp_path: Path, asked: list[str]
) -> None:
    index = tmp_path / "c.vidkin"
    run("index", "--stand-in", library.folder, "--index", index, "--workers", "2")
    assert asked == ["executor there 2"]
    asked.clear()
    found = run("search", library.clip, "--stand-in", "here", "--index", index, "-f", "json").json
    assert found["matches"] == run("search", library.clip, "--index", index, "-f", "json").json["matches"] != []
    assert (asked[0], asked[-1]) == ("search here", "close")
    assert "score" in asked
    asked.clear()
    groups = run("duplicates", "--stand-in=here", "--index", index, "-f", "json").json["groups"]
    assert [len(group["members"]) for group in groups] == [2]
    assert "run" in asked


def test_it_is_in_the_help_of_commands_that_take_it_and_of_no_other() -> None:
    for command in ("search", "duplicates", "coverage", "recurring", "serve"):
        assert f"Where to {command}." in " ".join(run(command, "--help").out.split())
    for command in ("index", "info", "match"):
        assert "--stand-in" not in run(command, "--help").out
    assert "No such option: --stand-in" in run("info", "--stand-in", status=2).err


def test_a_configuration_file_gives_it_a_default(
    library: Library, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text('[search]\nstand-in = "here"\n')
    monkeypatch.setenv("VIDKIN_CONFIG", str(tmp_path / "config.toml"))
    run("search", library.clip, "--index", library.index)
    assert asked[0] == "search here"


@pytest.mark.parametrize("words", [("search", "--ray", "clip.mp4"), ("index", "--ray=auto", "videos")])
def test_an_option_of_a_package_that_is_not_installed_says_what_to_install(words: Sequence[str]) -> None:
    (line,) = run(*words, status=3).err.splitlines()
    assert line == (
        "Error: --ray needs the package vidkin-scale, which is not installed; install it with: "
        f"{install_command(package='vidkin-scale')}"
    )
    assert "No such option: --ray" in run("info", "--ray", status=2).err


@pytest.mark.parametrize(
    ("words", "marked"),
    [
        ("index --ray", "index --ray="),
        ("index --ray videos", "index --ray= videos"),
        ("index --ray here:1 videos", "index --ray here:1 videos"),
        ("index --ray --prune videos", "index --ray= --prune videos"),
        ("index --ray=here:1", "index --ray=here:1"),
        ("index -- --ray", "index -- --ray"),
    ],
)
def test_an_option_may_be_used_without_its_value(words: str, marked: str) -> None:
    assert mark_optional_value(words.split(), "--ray", re.compile(r"\w+:\d+")) == marked.split()
