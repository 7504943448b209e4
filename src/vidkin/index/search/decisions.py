"""What a person said about pairs of videos, remembered across runs and renames."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index.storage.files import write_whole

__all__ = ["Decisions", "Verdict"]

Verdict = Literal["match", "not a match"]


@dataclass(slots=True)
class Decisions:
    """Verdicts on unordered pairs of files, named by the hashes of their content.

    Attributes:
        verdicts: Pair of content hashes -> verdict.
    """

    FILE = "decisions.json"

    verdicts: dict[frozenset[str], Verdict] = field(default_factory=dict)

    def decide(self, first: str, second: str, verdict: Verdict) -> None:
        """Remember a verdict on two content hashes; a later one replaces it.

        Raises:
            InvalidArgumentError: Both are the same file.
        """
        if first == second:
            raise InvalidArgumentError("the two videos have the same content; there is nothing to decide")
        self.verdicts[frozenset((first, second))] = verdict

    def verdict(self, first: str, second: str) -> Verdict | None:
        """What was said about this pair, if anything."""
        return self.verdicts.get(frozenset((first, second)))

    @classmethod
    def open(cls, folder: Path) -> Decisions:
        """Those of the collection in this folder.

        Raises:
            CollectionDamagedError: The file is damaged; the message says where it is, nothing is thrown away.
        """
        path = folder / cls.FILE
        if not path.is_file():
            return cls()
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["decisions"]
            return cls({frozenset((row["first"], row["second"])): row["verdict"] for row in rows})
        except (ValueError, KeyError, TypeError) as error:
            raise CollectionDamagedError(
                f"{path} does not hold decisions ({error}); repair it or move it away"
            ) from error

    def save(self, folder: Path) -> None:
        """Write to the collection's folder, whole or not at all."""
        rows = [
            {"first": min(pair), "second": max(pair), "verdict": verdict}
            for pair, verdict in sorted(self.verdicts.items(), key=lambda item: sorted(item[0]))
        ]
        write_whole(folder / self.FILE, json.dumps({"decisions": rows}, indent=1).encode())
