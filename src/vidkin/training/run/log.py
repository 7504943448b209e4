"""The log of a run: JSON lines, and TensorBoard events on request."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError, MissingPartError

__all__ = ["LOG_FILE", "RunLog"]

LOG_FILE = "run.jsonl"


class RunLog:
    """``run.jsonl`` in the folder of a run: one object per line, with the step and its values.

    Args:
        folder: Folder of the run; None writes nothing, as in all processes except the first.
        resume_after: Keep the lines up to this step and drop those that a killed run wrote after its last checkpoint;
            None starts over.
        tensorboard: Also write events into ``tensorboard/``.

    Raises:
        MissingPartError: TensorBoard is requested but not installed.
    """

    def __init__(
        self, folder: Path | None, *, resume_after: int | None = None, tensorboard: bool = False
    ) -> None:
        self.path = Path(os.devnull) if folder is None else folder / LOG_FILE
        kept = "" if resume_after is None else _lines_up_to(self.path, resume_after)
        self._writer: Any = None
        if tensorboard and folder is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise MissingPartError(
                    "the TensorBoard log needs tensorboard; install with: pip install 'vidkin[tensorboard]'"
                ) from error
            purge = None if resume_after is None else resume_after + 1
            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=purge)
        try:
            self.path.write_text(kept, encoding="utf-8")
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(
                f"{self.path}: cannot be written: {error.strerror or error}"
            ) from error

    def write(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """Add one line; NaN and infinity become null."""
        finite = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }
        self._file.write(json.dumps({"step": step, "kind": kind, **finite}) + "\n")
        self._file.flush()
        if self._writer is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write pending lines and close the files."""
        self._file.close()
        if self._writer is not None:
            self._writer.close()


def _lines_up_to(path: Path, step: int) -> str:
    """Whole lines of steps up to this one; a line that a kill cut short is dropped."""
    if not path.is_file():
        return ""
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            values = parse_json(line)
        except ValueError:
            continue
        if values["step"] <= step:
            kept.append(line + "\n")
    return "".join(kept)
