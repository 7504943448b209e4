"""What happened in a run, line by line: JSON lines always, TensorBoard where asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vidkin.errors import InvalidArgumentError, MissingPartError

__all__ = ["LOG_FILE", "RunLog"]

LOG_FILE = "run.jsonl"


class RunLog:
    """``run.jsonl`` in the folder of a run: one object a line, with the step and what is told about it.

    Args:
        folder: Of the run.
        resume_after: Keep the lines up to this step, drop what a killed run wrote after its last checkpoint; None
            starts anew.
        tensorboard: Write events into ``tensorboard/``, too.

    Raises:
        MissingPartError: TensorBoard is asked for and not installed.
    """

    def __init__(self, folder: Path, *, resume_after: int | None = None, tensorboard: bool = False) -> None:
        self.path = folder / LOG_FILE
        kept = "" if resume_after is None else _lines_up_to(self.path, resume_after)
        self._writer = _tensorboard(folder / "tensorboard", resume_after) if tensorboard else None
        try:
            self.path.write_text(kept, encoding="utf-8")
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def write(self, step: int, kind: str, values: Mapping[str, Any]) -> None:
        """One line; numbers that are not finite become null."""
        told = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }
        self._file.write(json.dumps({"step": step, "kind": kind, **told}) + "\n")
        self._file.flush()
        if self._writer is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write out what is pending."""
        self._file.close()
        if self._writer is not None:
            self._writer.close()


def _lines_up_to(path: Path, step: int) -> str:
    """Whole lines of steps that are kept; a line that a kill cut short is dropped."""
    if not path.is_file():
        return ""
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if found["step"] <= step:
            kept.append(line + "\n")
    return "".join(kept)


def _tensorboard(folder: Path, resume_after: int | None) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingPartError(
            "the TensorBoard log needs the package tensorboard: pip install 'vidkin[tensorboard]'"
        ) from error
    purge = None if resume_after is None else resume_after + 1
    return SummaryWriter(str(folder), purge_step=purge)
