"""Run every automatic benchmark of the project one after another (`make bench`).

    python research/benchmarks/run_all.py [--data FOLDER] [--work FOLDER] [--only NAME...] [--quick] [--list]

`results.toml` in this folder lists all results with their files, commands, minutes, seeds and the date of the last run.
A full run takes a night on two cores; --quick runs what fits into an hour, shortest first. Results go to
research/results/. Benchmarks on real videos require the measurement data (VIDKIN_DATA or --data) and are skipped with a
message if it is missing. After a run, the minutes, date and table of research/results/README.md are updated.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
TABLE = HERE / "results.toml"
PAGE = RESULTS / "README.md"
# Markers around the part of the page that this script writes.
START, END = "<!-- results.toml -->\n", "<!-- end -->\n"
QUICK_MINUTES = 60
# Placeholders in commands, and the paths in the measurement data that they stand for.
FOLDERS = {
    "videos": "videos", "edited": "shots", "labelled": "labelled", "photos": "photos", "fruit": "labelled/fruit",
    "weights": "weights/mobilenetv2_100.same.safetensors", "data": "",
}  # fmt: skip
LISTS = {"photographs...", "test_clips...", "unrelated..."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A row of results.toml, which documents the fields."""

    name: str
    files: Sequence[str]
    what: str
    commands: Sequence[Sequence[str]]
    minutes: int
    seeds: int | None = None
    last: datetime.date | None = None
    by_hand: str | None = None
    publish: Sequence[str] = ()

    @property
    def needs_data(self) -> bool:
        """Whether a command refers to the measurement data."""
        words = [word for command in self.commands for word in command]
        names = [f"{{{name}}}" for name in FOLDERS] + [f"{{{name}}}" for name in LISTS]
        return any(name in word for word in words for name in names)


def read_results() -> list[Result]:
    """Read the rows in the order in which they are run."""
    return [Result(**row) for row in tomlkit.parse(TABLE.read_text(encoding="utf-8")).unwrap()["result"]]


def table(results: Sequence[Result]) -> str:
    """Format the rows as the table of research/results/README.md."""
    lines = ["| files | what | minutes | seeds | last run | command |", "|---|---|---|---|---|---|"]
    for result in results:
        files = ", ".join(f"`{name}`" for name in result.files)
        command = (
            f"`--only {result.name}`"
            if result.by_hand is None
            else f"{_format_commands(result)}; by hand: {result.by_hand}"
        )
        last = result.last or "not run"
        lines.append(f"| {files} | {result.what} | {result.minutes} | {result.seeds or '-'} | {last} | {command} |")
    return "\n".join(lines) + "\n"


def _format_commands(result: Result) -> str:
    """Format the commands as typed by a person, with machine-specific arguments in capital letters."""
    words = [[word.replace("{", "").replace("}", "").replace("...", "") for word in each] for each in result.commands]
    for command in words:
        command[0] = command[0] if command[0] == "vidkin" else f"python research/benchmarks/{command[0]}"
    return ", ".join(f"`{' '.join(command)}`" for command in words)


def fill_placeholders(command: Sequence[str], values: Mapping[str, str | list[str]]) -> list[str]:
    """Replace the placeholders in a command of results.toml."""
    start = [sys.executable, "-m", "vidkin"] if command[0] == "vidkin" else [sys.executable, str(HERE / command[0])]
    words: list[str] = []
    for word in command[1:]:
        value = values[word[1:-1]] if word.endswith("...}") else word.format_map(values)
        words += [value] if isinstance(value, str) else value
    return start + words


def placeholder_values(data: Path | None, work: Path) -> dict[str, str | list[str]]:
    """Return the values of the placeholders on this machine."""
    values: dict[str, str | list[str]] = {"work": str(work), "results": str(RESULTS)}
    images = Path(_skimage_folder())
    values |= {"images": str(images), "photographs...": list(map(str, sorted(images.glob("*.[jp][pn]g"))))}
    if data is not None:
        values |= {name: str(data / place) for name, place in FOLDERS.items()}
        values["test_clips..."] = list(map(str, second_halves(data / "videos")))
        names = (HERE / "unrelated_videos.txt").read_text(encoding="utf-8").split()
        values["unrelated..."] = [str(data / name) for name in names]
    return values


def second_halves(folder: Path) -> list[Path]:
    """Return the second half of the files of each folder, on which the default shot detector was not developed."""
    found = []
    for part in sorted(path for path in folder.iterdir() if path.is_dir()):
        paths = sorted(part.iterdir())
        found += paths[(len(paths) + 1) // 2 :]
    return found


def _skimage_folder() -> str:
    import skimage

    return os.path.join(os.path.dirname(skimage.__file__), "data")


def choose(results: Sequence[Result], only: Sequence[str] | None, *, quick: bool, has_data: bool) -> list[Result]:
    """Select the results given by name, or all automatic ones; ``quick`` limits these to an hour in total."""
    if only:
        unknown = set(only) - {result.name for result in results}
        if unknown:
            raise SystemExit(f"unknown result: {', '.join(sorted(unknown))}; see --list")
        chosen = [result for result in results if result.name in only]
    else:
        chosen = [result for result in results if result.by_hand is None]
    if not has_data and any(result.needs_data for result in chosen):
        print("no measurement data (VIDKIN_DATA): skipping benchmarks on real videos")
        chosen = [result for result in chosen if not result.needs_data]
    if not quick:
        return chosen
    minutes = 0
    short = set()
    for result in sorted(chosen, key=lambda result: result.minutes):
        minutes += result.minutes
        if minutes <= QUICK_MINUTES:
            short.add(result.name)
    return [result for result in chosen if result.name in short]


def run(result: Result, values: Mapping[str, str | list[str]]) -> bool:
    """Run the commands of a row and record date and minutes if they wrote results; return whether all succeeded."""
    start, day = time.monotonic(), time.time()
    ended = []
    for command in result.commands:
        with tempfile.TemporaryDirectory() as folder:
            # `vidkin` refuses to overwrite files that it did not write itself, which includes all files of a clone.
            own = {**values, "results": folder} if command[0] == "vidkin" else values
            ended.append(subprocess.run(fill_placeholders(command, own), check=False).returncode == 0)
            for path in Path(folder).iterdir():
                (RESULTS / path.name).write_bytes(path.read_bytes())
    files = list(result.files)
    if result.publish and all(ended):
        folder, name = (word.format_map(values) for word in result.publish)
        files = publish(Path(folder), name)
    # A script that misses its target has also written its results.
    if any((RESULTS / name).stat().st_mtime >= day for name in files if (RESULTS / name).exists()):
        note_run(result.name, max(1, round((time.monotonic() - start) / 60)), files)
    return all(ended)


def publish(folder: Path, name: str) -> list[str]:
    """Copy the reports of a study to the results under another name, and return their names, pages first.

    Pictures of the top-ranked results are left out, since they show photographs of the measurement data.
    """
    published = []
    for path in folder.iterdir():
        if path.suffix in (".md", ".json", ".png") and not path.stem.startswith("rankings"):
            published.append(path.name.replace(path.stem.split("-")[0], name, 1))
            (RESULTS / published[-1]).write_bytes(path.read_bytes())
    return sorted(published, key=lambda own: ((".md", ".json", ".png").index(Path(own).suffix), own))


def note_run(name: str, minutes: int, files: Sequence[str]) -> None:
    """Record date, minutes and files of a run in results.toml, and update the table."""
    document = tomlkit.parse(TABLE.read_text(encoding="utf-8"))
    rows: Any = document["result"]
    row = next(row for row in rows if row["name"] == name)
    row["minutes"], row["last"] = minutes, datetime.date.today()
    if sorted(files) != sorted(row["files"]):
        row["files"] = list(files)
    TABLE.write_text(tomlkit.dumps(document), encoding="utf-8")
    write_table()


def write_table() -> None:
    """Update the table in research/results/README.md."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    PAGE.write_text(before + START + table(read_results()) + END + after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("VIDKIN_DATA", HERE.parent.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default if default.is_dir() else None)
    parser.add_argument("--work", type=Path, help="working folder for copies and indexes (default: a temporary folder)")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="names of the results to produce, including manual ones"
    )
    parser.add_argument("--quick", action="store_true", help=f"limit the run to {QUICK_MINUTES} minutes in total")
    parser.add_argument("--list", action="store_true", help="print the commands without running them")
    parser.add_argument("--table", action="store_true", help="only update the table of research/results/README.md")
    arguments = parser.parse_args()
    if arguments.table:
        write_table()
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        values = placeholder_values(arguments.data, work)
        chosen = choose(read_results(), arguments.only, quick=arguments.quick, has_data=arguments.data is not None)
        missed = []
        for result in chosen:
            print(f"== {result.name}, about {result.minutes} min", flush=True)
            if arguments.list:
                print(*(shlex.join(fill_placeholders(command, values)) for command in result.commands), sep="\n")
            elif not run(result, values):
                missed.append(result.name)
    if missed:
        print(f"failed or below target: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
