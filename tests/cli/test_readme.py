"""What the README shows can be typed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Library, run

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def command_lines() -> list[list[str]]:
    """All lines of `vidkin`, in blocks and in sentences."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    lines += re.findall(r"`(vidkin [^`]+)`", README)
    found = [shlex.split(line.split("#")[0]) for line in lines]
    return [words[1:] for words in found if words and words[0].endswith("vidkin")]


def test_it_opens_with_the_two_commands() -> None:
    assert [line.split("#")[0].strip() for line in blocks("sh")[0].splitlines()] == ["make demo", "make test"]


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_every_command_and_option_exists(words: list[str]) -> None:
    shown = run(words[0], "--help").out
    options = [word for word in words[1:] if word.startswith("-")]
    assert all(re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", shown) for option in options), shown


def test_every_command_is_described() -> None:
    from vidkin.cli.app import app

    described = set(re.findall(r"^\| `vidkin ([\w-]+)", README, re.MULTILINE)) | set(
        re.findall(r"^\|[^|]*, `vidkin ([\w-]+)", README, re.MULTILINE)
    )
    groups = {group.name for group in app.registered_groups}
    assert described == {command.name for command in app.registered_commands} | groups


def test_the_python_runs(
    library: Library, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Path.cwd()
    monkeypatch.setenv("HOME", str(here))
    (here / "Videos").mkdir()
    shutil.copy(library.folder / "coffee.mp4", here / "Videos" / "one.mp4")
    shutil.copy(
        library.folder / "coffee.mp4", here / "Videos" / "two.mp4"
    )  # read once, as the content is the same
    shutil.copy(library.clip, here / "clip.mp4")
    shutil.copy(library.folder / "coffee.mp4", here / "a.mp4")
    shutil.copy(library.folder / "rocket.mp4", here / "b.mp4")
    names: dict[str, object] = {}
    (source,) = blocks("python")
    exec(compile(source, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "one.mp4" in shown
    assert "->" in shown
    assert len(names["groups"]) == 1  # type: ignore[arg-type]
    assert names["comparison"].score < 0.3  # type: ignore[attr-defined]
