"""What a command opens and writes: an index by its name, and a check of output files before any work."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from vidkin._base.values import write_csv_rows
from vidkin.cli.console import OutputFormat, meter
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.rendering.text import printable

if TYPE_CHECKING:
    from vidkin.index import Index

PathLike = str | os.PathLike[str]
STANDARD_OUTPUT = Path("-")
"""What stands for it where a file is named."""


def open_index(
    index: PathLike, *, extractor: str | None = None, weights: Path | None = None, ray: str | None = None
) -> Index:
    """The index of this name, read-only, with the extractor that made it. Use it in a ``with`` block.

    Args:
        index: Folder of the index, or its address on object storage.
        extractor: The model that made the index, if it has moved.
        weights: Its weights, if they have moved.
        ray: Address of a cluster that searches it, empty for the default one; None searches in this process.

    Raises:
        CollectionNotFoundError: There is no index.
        ClusterError: No cluster answers at the address.
        CollectionMismatchError: Another extractor made the index.
    """
    with meter("opening the index"):
        from vidkin.index import Index

        opened = Index.open(index, extractor=extractor, weights=weights, create=False, read_only=True)
        return opened if ray is None else opened.on_cluster(ray or None)


def open_index_for_writing(
    index: PathLike,
    *,
    extractor: str | None = None,
    weights: Path | None = None,
    whitening: Path | None = None,
    rate: float | None = None,
    shards: int | None = None,
    create: bool = False,
) -> Index:
    """The index of this name, writable; a new one if ``create`` is set and there is none.

    Raises:
        CollectionNotFoundError: There is no index and ``create`` is not set.
        CollectionMismatchError: The index was made with another extractor or another rate.
    """
    with meter("opening the index"):
        from vidkin.index import Index

        return Index.open(
            index,
            extractor=extractor,
            weights=weights,
            whitening=whitening,
            rate=rate,
            shards=shards,
            create=create,
        )


def has_index(index: PathLike) -> bool:
    """Whether there is anything at the address of an index."""
    from vidkin.index.storage.opening import open_place

    return open_place(index).has_folder()


def goes_to_output(csv: Path | None, form: OutputFormat) -> bool:
    """Whether a table goes to standard output as CSV.

    Raises:
        typer.BadParameter: Another format goes there, too.
    """
    if form is not OutputFormat.TABLE and csv == STANDARD_OUTPUT:
        raise typer.BadParameter(f"--format {form.value} and --csv - both write to standard output; use one of them")
    return csv == STANDARD_OUTPUT


@contextmanager
def open_csv(path: Path) -> Iterator[IO[str]]:
    """A file for CSV, or standard output; names of files that are not valid Unicode keep their bytes.

    In a terminal they do not: it would obey some of them.

    Raises:
        OSError: The file cannot be written.
    """
    if path != STANDARD_OUTPUT:
        with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
            yield file
        return
    sys.stdout.flush()
    if sys.stdout.isatty():
        lines = io.StringIO(newline="")
        yield lines
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines.getvalue().splitlines())
    else:
        yield sys.stdout
    sys.stdout.flush()


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows for ``--csv``, see :func:`open_csv`; control characters in names are replaced.

    Raises:
        InvalidArgumentError: The file cannot be written.
    """
    try:
        with open_csv(path) as file:
            write_csv_rows(file, rows)
    except BrokenPipeError:
        raise  # the program that reads has had enough, as `head` has
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: cannot be written ({error.strerror}); choose another file for --csv"
        ) from error


def check_inputs(*paths: PathLike) -> None:
    """Raise an error before anything is loaded if an input is not there: loading takes longer than to say so.

    Raises:
        MediaError: There is no such file.
    """
    for path in paths:
        if not os.path.exists(path):
            raise MediaError(os.fspath(path), "there is no such file", temporary=True)


def check_some_exist(paths: Iterable[Path]) -> None:
    """Raise an error if none of these files and folders is there.

    Raises:
        MediaError: There is no such file or folder; names the first.
    """
    names = [os.path.expanduser(path) for path in paths]
    if names and not any(map(os.path.lexists, names)):
        raise MediaError(names[0], "there is no such file or folder; name a folder with videos", temporary=True)


def check_output_path(path: Path, *, inputs: Iterable[Path | None]) -> None:
    """Raise an error before any work if an output file cannot be written or is one of the inputs.

    Args:
        path: The output file; it may exist already.
        inputs: Files that the command reads; None and files that do not exist are ignored.

    Raises:
        InvalidArgumentError: The path is an input, a folder or a device, or its folder does not exist.
    """
    name = printable(os.fspath(path))
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidArgumentError(f"{printable(os.fspath(folder))}: no such folder; create it first")
    if not path.exists():
        return
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise InvalidArgumentError(f"{name}: cannot be written because it is {kind}; name a file")
    if any(item is not None and item.exists() and item.samefile(path) for item in inputs):
        raise InvalidArgumentError(f"{name}: is also an input; choose another output file")


def check_output_file(output: Path | None) -> None:
    """Create the folder, and raise an error before anything is measured if the figures cannot be written.

    Raises:
        InvalidArgumentError: The path is a folder, or a file cannot be created there.
    """
    if output is None:
        return
    if output.is_dir():
        raise InvalidArgumentError(f"--output must name a file, {output} is a folder")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise InvalidArgumentError(
            f"--output cannot be written in {output.parent}: {error.strerror or error}"
        ) from error
