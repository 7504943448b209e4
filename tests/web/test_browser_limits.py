"""A browser test that hangs ends with a message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.web.browser import new_page, open_browser, served

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.mark.large
def test_hanging_page_fails_instead_of_waiting_forever() -> None:
    with open_browser() as browser:
        with (
            pytest.raises(AssertionError, match=r"a page in Chromium took longer than 1\.5 s and was killed"),
            new_page(browser, seconds=1.5) as page,
        ):
            page.evaluate("() => { for (;;) {} }")  # such a call has no limit of its own
        assert not browser.is_connected()


@pytest.mark.parametrize("phase", ["start", "end"])
def test_hanging_server_is_killed_and_reports_its_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    monkeypatch.setattr(f"tests.web.browser._TO_{phase.upper()}", 0.5)
    begin = "" if phase == "start" else 'print("Open http://127.0.0.1:1/", flush=True); '
    deaf = tmp_path / "deaf"
    # By the shell: a first line with the path of the interpreter must have no space in it.
    deaf.write_text(f"#!/bin/sh\ntrap '' INT\nexec \"{sys.executable}\" -c 'import time; {begin}time.sleep(99)'\n")
    deaf.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(deaf))
    words = f"the {phase} of `vidkin serve`.* took longer"
    with pytest.raises(AssertionError, match=words) as error, served(tmp_path):
        pass
    if phase == "end":  # before its start it may not be able to
        assert 'File "<string>", line 1 in <module>' in str(error.value)
