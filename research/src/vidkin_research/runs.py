"""Stored results of experiments, so that an interrupted experiment can be resumed and results never mix data."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidkin._base.files import write_text
from vidkin._base.outputs import open_output
from vidkin._base.values import as_json, read_json
from vidkin.errors import InvalidArgumentError

__all__ = [
    "OnStudyProgress",
    "Report",
    "check_same_data",
    "commit_of",
    "load_or_run",
    "run_path",
    "write_figures",
]

OnStudyProgress = Callable[[int, int, str], None]
"""Called with the number of steps done, the total (0 if unknown), and the current step."""

# Maximum line length of the JSON files.
_WIDTH = 120
# Folders whose results depend on the data. Features need no check, because a digest identifies their data.
_DATA_DEPENDENT = ("runs", "highlights", "composed-train", "composed-test")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Result of an experiment.

    Attributes:
        what: Title of the experiment.
        machine: Description of the machine.
        settings: Everything that the results depend on, except the data.
        minutes: Wall-clock time in minutes, not counting stored runs.
        summary: Means over the seeds, one entry per table row.
        runs: One entry per run.
    """

    what: str
    machine: str
    settings: Mapping[str, Any]
    minutes: float
    summary: Sequence[Mapping[str, Any]]
    runs: Sequence[Mapping[str, Any]]


def load_or_run(path: Path, run: Callable[[], Any], *, is_current: Callable[[Any], bool] | None = None) -> Any:
    """Return the JSON value stored in a file; if there is none, call ``run`` and store its result.

    Args:
        path: Path of the file; its folder is created if it does not exist.
        run: Function that computes the result, which must consist of JSON values.
        is_current: Function that decides whether a stored value can be used; None uses every stored value.
    """
    if path.is_file():
        stored = read_json(path)
        if is_current is None or is_current(stored):
            return stored
    result = run()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(result, indent=1) + "\n")
    return read_json(path)


def commit_of(*files: str) -> str | None:
    """Return the last commit that changed one of these files, with ``+`` for uncommitted changes; None outside a clone.

    Args:
        files: Paths relative to the repository root.
    """
    root = Path(__file__).resolve().parents[3]
    asked: list[list[str]] = [["log", "-1", "--format=%h"], ["status", "--porcelain"]]
    try:
        last, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words, "--", *files], capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return (last + "+" * bool(changed)) or None


def run_path(folder: Path, settings: Sequence[object]) -> Path:
    """Return the path for a run with these settings; its name is a digest of them."""
    return folder / f"{hashlib.sha256(repr(tuple(settings)).encode()).hexdigest()[:20]}.json"


FIGURES = "figures of vidkin-research"
"""Source recorded in files of :func:`write_figures`, see :func:`vidkin._base.outputs.open_output`."""


def write_figures(report: object, output: Path | None) -> None:
    """Write a report as compact JSON with five significant digits; do nothing if ``output`` is None.

    Raises:
        MediaError: The file cannot be written.
    """
    if output is not None:
        with open_output(output, source=FIGURES) as partial:
            partial.write_text(_short_json(as_json(report)) + "\n", encoding="utf-8")


def _short_json(value: Any, depth: int = 0) -> str:
    """Format as JSON, filling each line, with five significant digits per number."""
    if isinstance(value, float):
        return json.dumps(float(f"{value:.5g}"))
    if not isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_short_json(inner, depth + 1)}" for key, inner in value.items()]
    else:
        parts = [_short_json(inner, depth + 1) for inner in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    one_line = f"{opening}{', '.join(parts)}{closing}"
    if depth + len(one_line) <= _WIDTH and "\n" not in one_line:
        return one_line
    pad = "\n" + " " * (depth + 1)
    return f"{opening}{pad}{f',{pad}'.join(parts)}\n{' ' * depth}{closing}"


def check_same_data(
    work: Path, experiment: str, inputs: Mapping[str, Path | None], *, outputs: Sequence[Path | None] = ()
) -> None:
    """Record which data the results in ``work`` are from, and reject other data.

    Args:
        work: Folder of the stored results.
        experiment: Name of the experiment.
        inputs: Files or folders by command-line option. Files are identified by name and size.
        outputs: Files that the experiment writes outside ``work``; not counted as data if they are in a data folder.

    Raises:
        InvalidArgumentError: ``work`` contains results from other data, or cannot be written.
    """
    own = [path.absolute() for path in (work, *outputs) if path is not None]
    contents = {option: _digest_of_contents(path, own) for option, path in inputs.items()}
    record = work / f"{experiment}-data.json"
    try:
        if record.is_file() and any((work / name).is_dir() for name in _DATA_DEPENDENT):
            before = read_json(record)
            changed = [option for option, content in contents.items() if before.get(option) != content]
            if changed:
                raise InvalidArgumentError(
                    f"{work}: contains results from other data ({', '.join(changed)}); "
                    "choose another folder with --work"
                )
        else:
            work.mkdir(parents=True, exist_ok=True)
            write_text(record, json.dumps(contents))
    except OSError as error:
        raise InvalidArgumentError(f"--work {work} cannot be used: {error.strerror or error}") from error


def _digest_of_contents(path: Path | None, own: Sequence[Path]) -> str | None:
    """Return a digest of file names and sizes, ignoring files in ``own``; None without a path."""
    if path is None:
        return None
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    listed = [
        (each.name if each == path else each.relative_to(path).as_posix(), each.stat().st_size)
        for each in files
        if not any(each.absolute().is_relative_to(one) for one in own)
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:20]
