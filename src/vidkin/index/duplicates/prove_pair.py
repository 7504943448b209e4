"""Prove that one file contains everything in another, for files that need not be in an index."""

from __future__ import annotations

import os
from collections.abc import Callable

from vidkin.errors import MediaError
from vidkin.files.findings import Finding
from vidkin.files.proof import prove
from vidkin.files.proof_record import Proof
from vidkin.index.query.sound import compare


def prove_pair(kept: str, removed: str, *, on_progress: Callable[[float], None] | None = None) -> Proof:
    """Compare and decode two files to prove that everything in ``removed`` is in ``kept``.

    Args:
        kept: The file to keep.
        removed: The file to remove.
        on_progress: Callback that receives the fraction done, in [0, 1].

    Returns:
        The proof; if a file is unreadable, it contains a finding.
    """
    try:
        segments = compare(removed, kept).segments
    except MediaError as error:
        finding = Finding("unreadable", f"{os.fspath(error.path)}: {error.cause}")
        return Proof(kept, removed, "", "", (finding,))
    return prove(kept, removed, segments, on_progress=on_progress)
