"""What hangs in a test of the browser ends with a message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.web.browser import new_page, open_browser, served

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def test_a_page_that_hangs_fails_instead_of_waiting_without_end() -> None:
    with open_browser() as browser:
        with (
            pytest.raises(AssertionError, match=r"a page in Chromium took longer than 1\.5 s and was killed"),
            new_page(browser, seconds=1.5) as page,
        ):
            page.evaluate("() => { for (;;) {} }")  # such a call has no limit of its own
        assert not browser.is_connected()


@pytest.mark.parametrize(("first", "phase"), [("", "start"), ("echo Open http://127.0.0.1:1/", "end")])
def test_a_server_that_neither_starts_nor_ends_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, phase: str
) -> None:
    monkeypatch.setattr(f"tests.web.browser._TO_{phase.upper()}", 0.5)
    deaf = tmp_path / "deaf"
    # Not Python: a first line with the path of the interpreter must have no space in it.
    deaf.write_text(f"#!/bin/sh\ntrap '' INT\n{first}\nexec sleep 99\n")
    deaf.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(deaf))
    with (
        pytest.raises(AssertionError, match=f"the {phase} of `vidkin serve`.* took longer"),
        served(tmp_path),
    ):
        pass
