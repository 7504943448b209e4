"""Coverage-guided fuzzing of a target.

    python -m tests.fuzz plan --seconds 60 --found /tmp/found

Atheris (libFuzzer) mutates the stored corpus. Inputs that reach new lines are written to ``--found``; an input that
breaks the target is written there as ``crash-...``, ``timeout-...`` or ``oom-...``, and the exit status is not 0. Keep
small new inputs in ``tests/fuzz/corpus/<target>``: :mod:`tests.fuzz.test_corpus` runs the target on them in every test
run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
# Only these modules are instrumented; instrumenting everything would take minutes.
_WATCHED = (
    "json.decoder", "json.scanner", "tomllib", "vidkin._base.values", "vidkin._base.registry", "vidkin._base.toml",
    "vidkin._base.values", "vidkin.datasets.listing", "vidkin.files.plan",
    "vidkin.files.journal", "vidkin.media.frames",
    "vidkin.review.cuts", "vidkin.web.files",
)  # fmt: skip


def main() -> None:
    """Fuzz one target."""
    import atheris

    with atheris.instrument_imports(include=list(_WATCHED)):
        from tests.fuzz.targets import TARGETS, run
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--found", type=Path, required=True, help="folder for what is found")
    given = parser.parse_args()
    given.found.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={given.seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536",
        "-print_final_stats=1", f"-artifact_prefix={given.found}/", f"-dict={CORPUS.with_name('tokens.dict')}",
    ]  # fmt: skip
    atheris.Setup(
        [sys.argv[0], *options, str(given.found), str(CORPUS / given.target)], lambda data: run(given.target, data)
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
