"""Find and read stored runs: training runs with their curves, even while in progress, and benchmark results."""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from vidkin._base.files import open_regular_file
from vidkin._base.locks import open_lock
from vidkin._base.values import Result, parse_json, read_json

_LOG, _REPORT, _LOCK = "run.jsonl", "report.json", ".training.lock"
_MAX_RUNS, _MAX_FOLDERS, _MAX_DEPTH = 300, 5000, 4
# Maximum bytes to read per file and in total, because the folder may be untrusted, and a page waits for the response.
_MAX_BYTES, _MAX_TOTAL_BYTES = 64_000_000, 256_000_000
_MAX_LINE = 1 << 16
_MAX_POINTS = 1000
# If there is no lock to check, a run counts as interrupted after this many seconds without a new line in its log.
_SILENT = 600.0
_NOT_TERMS = frozenset({"step", "kind"})


@dataclass(frozen=True, slots=True)
class StoredRun(Result):
    """A training run or benchmark result.

    Attributes:
        id: Short identifier for URLs, derived from the path.
        name: Folder or file, relative to the searched folder.
        path: Absolute path.
        kind: ``training`` or ``benchmark``.
        state: ``running``, ``done`` or ``interrupted``.
        changed: Time of the last write, in seconds since the epoch.
        figures: Last value of each logged series of a training run; empty for a benchmark.
        pictures: File names of images in a training run's folder, for example retrieval results.
    """

    id: str
    name: str
    path: str
    kind: Literal["training", "benchmark"]
    state: Literal["running", "done", "interrupted"]
    changed: float
    figures: Mapping[str, float]
    pictures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curves(Result):
    """The log of a training run.

    Attributes:
        series: (step, value) points of each series by name; at most 1,000 evenly spaced points, including the last.
        warnings: Logged warnings.
    """

    series: Mapping[str, tuple[tuple[int, float], ...]]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FigureTable(Result):
    """A table of benchmark results.

    Attributes:
        title: Keys that lead to the table in the file.
        columns: Column names.
        rows: Cells as text; floats have four decimals.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def find_runs(folders: Sequence[Path]) -> list[StoredRun]:
    """Find training runs (folders with ``run.jsonl``) and benchmarks (JSON files with result tables), newest first.

    The search goes four levels deep, does not follow links, and returns at most 300 runs. Unreadable files, and files
    beyond a total of 256 MB, are skipped.
    """
    runs: list[StoredRun] = []
    left = _MAX_TOTAL_BYTES
    for folder in folders:
        for seen, (place, names, files) in enumerate(os.walk(folder)):
            depth = len(Path(place).relative_to(folder).parts)
            names[:] = sorted(name for name in names if not name.startswith(".")) if depth < _MAX_DEPTH else []
            if seen > _MAX_FOLDERS or len(runs) >= _MAX_RUNS:
                break
            if _LOG in files:
                names[:] = []
            for path in [Path(place, name) for name in ([_LOG] if _LOG in files else sorted(files))]:
                if path.name != _LOG and path.suffix != ".json":
                    continue
                left -= min(_size(path), _MAX_BYTES)
                if left < 0:
                    break
                with suppress(OSError):  # not a regular file, or gone in the meantime
                    if path.name == _LOG:
                        runs.append(_training(path.parent, folder, files))
                    elif read_tables(path):
                        runs.append(_run(path, folder, "benchmark", "done", {}, ()))
    return sorted(runs, key=lambda run: -run.changed)


def read_curves(path: Path) -> Curves:
    """Read the log of a training run in a folder, except for an incomplete last line; of logs above 64 MB, only the end
    is read.

    Raises:
        OSError: The log cannot be read, or is not a regular file.
    """
    with open_regular_file(path / _LOG, follow_links=False) as file:
        state = os.fstat(file.fileno())
    return _read_curves(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=_MAX_RUNS)
def _read_curves(path: Path, _changed: int, _size: int) -> Curves:
    """Cached until the file changes, because a page that follows a training run polls every two seconds."""
    series: dict[str, list[tuple[int, float]]] = {}
    warnings = []
    for line in _lines(path / _LOG):
        if line.get("kind") == "warning":
            warnings.append(str(line.get("text", "")))
            continue
        prefix = "" if line.get("kind") == "step" else f"{line.get('kind')} "
        for name, value in line.items():
            if name not in _NOT_TERMS and isinstance(value, int | float) and not isinstance(value, bool):
                series.setdefault(prefix + name, []).append((int(line["step"]), float(value)))
    thinned = {}
    for name, points in series.items():
        step = max(1, -(-len(points) // _MAX_POINTS))
        thinned[name] = tuple(points[(len(points) - 1) % step :: step])
    return Curves(thinned, tuple(warnings))


def read_tables(path: Path) -> tuple[FigureTable, ...]:
    """Read each list of objects with numbers in a JSON file as a table; empty if there is none."""
    try:
        state = path.stat()
        return _read_tables(path, state.st_mtime_ns) if state.st_size <= _MAX_BYTES else ()
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=_MAX_RUNS)
def _read_tables(path: Path, _changed: int) -> tuple[FigureTable, ...]:
    """Cached until the file changes, because a page that follows a training run polls every two seconds."""
    value = read_json(path)
    return tuple(_tables(value, "")) if isinstance(value, dict) else ()


def _training(path: Path, root: Path, files: Sequence[str]) -> StoredRun:
    curves = read_curves(path)
    ends = {name: points[-1] for name, points in curves.series.items()}
    figures = {name: value for name, (_, value) in ends.items()}
    state: Literal["running", "done", "interrupted"] = "interrupted"
    if _is_running(path):
        state = "running"
    elif _REPORT in files and _is_report_of(path, last=max((step for step, _ in ends.values()), default=0)):
        state = "done"
    pictures = tuple(sorted(name for name in files if name.endswith(".png")))
    return _run(path, root, "training", state, figures, pictures)


def _is_running(path: Path) -> bool:
    """Whether a training process is running in the folder: it holds a lock, which is released even if it is killed."""
    from filelock import Timeout  # imported here because it loads asyncio

    if (path / _LOCK).is_file():
        with suppress(OSError):  # without write access, fall back to the time of the last line
            lock = open_lock(path / _LOCK)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return True
            lock.release()
            return False
    report = path / _REPORT
    return not report.is_file() and time.time() - (path / _LOG).stat().st_mtime < _SILENT


def _is_report_of(path: Path, *, last: int) -> bool:
    """Whether the report belongs to this log: it was written later, or has the same number of steps (after a rerun that
    had nothing to do)."""
    if (path / _REPORT).stat().st_mtime >= (path / _LOG).stat().st_mtime:
        return True
    try:
        steps: object = read_json(path / _REPORT)["steps"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return steps == last


def _run(
    path: Path,
    root: Path,
    kind: Literal["training", "benchmark"],
    state: Literal["running", "done", "interrupted"],
    figures: Mapping[str, float],
    pictures: tuple[str, ...],
) -> StoredRun:
    written = path / _LOG if kind == "training" else path
    name = path.relative_to(root).as_posix()
    short = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    name = root.name if name == "." else name
    return StoredRun(short, name, os.fspath(path), kind, state, written.stat().st_mtime, figures, pictures)


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it no longer exists."""
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with open_regular_file(path, follow_links=False) as opened, io.BufferedReader(opened) as file:
        if os.fstat(opened.fileno()).st_size > _MAX_BYTES:
            file.seek(-_MAX_BYTES, os.SEEK_END)
        left = _MAX_BYTES
        while left > 0 and (line := file.readline(_MAX_LINE)):
            left -= len(line)
            if not line.startswith(b"{"):  # for example, a sparse file
                continue
            try:
                value = parse_json(line.decode("utf-8", "replace"))
            except ValueError:
                continue
            if isinstance(value, dict) and isinstance(value.get("step"), int):
                yield value


def _tables(value: object, title: str) -> Iterator[FigureTable]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _tables(part, f"{title} / {name}" if title else str(name))
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        flat = [_flatten(row) for row in value[:200]]
        columns = tuple(flat[0])
        if any(isinstance(cell, float) for cell in flat[0].values()):
            rows = tuple(tuple(_cell(row.get(name)) for name in columns) for row in flat)
            yield FigureTable(title, columns, rows)
        for row in value[:20]:
            nested = {name: part for name, part in row.items() if isinstance(part, dict | list)}
            label = next((str(row[name]) for name in ("set", "name", "method") if name in row), "")
            yield from _tables(nested, f"{title} / {label}" if label else title)


def _flatten(row: Mapping[str, Any]) -> dict[str, str | int | float]:
    """Collect the strings and numbers of an object and of its nested objects, whose keys are joined."""
    cells: dict[str, str | int | float] = {}
    for name, value in row.items():
        inner = {f"{name} {key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        cells |= {key: part for key, part in inner.items() if isinstance(part, str | int | float)}
    return cells


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
