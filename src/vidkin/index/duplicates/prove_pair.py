"""Prove that one file holds everything in another, for files that need not be in an index."""

from __future__ import annotations

import os
from collections.abc import Callable

from vidkin.errors import MediaError
from vidkin.files.findings import Finding
from vidkin.files.proof import prove
from vidkin.files.proof_record import Proof
from vidkin.index.query.sound import compare


def prove_pair(kept: str, removed: str, *, on_progress: Callable[[float], None] | None = None) -> Proof:
    """Compare two files, and prove by decoding both that everything in ``removed`` is in ``kept``.

    Args:
        kept: The file that stays.
        removed: The file that may be removed.
        on_progress: Called with the share of the work that is done, 0 to 1.

    Returns:
        The proof; an unreadable file is a finding.
    """
    try:
        segments = compare(removed, kept).segments
    except MediaError as error:
        finding = Finding("unreadable", f"{os.fspath(error.path)}: {error.cause}")
        return Proof(kept, removed, "", "", (finding,))
    return prove(kept, removed, segments, on_progress=on_progress)
