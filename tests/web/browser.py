"""A server of its own process and a browser to look at it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import missing_part

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def served(index: Path, *options: str) -> Iterator[str]:
    """The address of ``vidkin serve`` for an index."""
    command = [sys.executable, "-m", "vidkin", "serve", str(index), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip().removeprefix("Open ")
        finally:
            server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=30)
    assert "Traceback" not in err, err


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Headless Chromium of this machine; skips the test where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        missing_part("there is no Chromium; run apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def new_page(
    browser: Browser, *, width: int = 1440, height: int = 900, scheme: str = "light"
) -> Iterator[Page]:
    """A page that must log no error: no script that fails, nothing that the server or the browser refuses."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert problems == []
