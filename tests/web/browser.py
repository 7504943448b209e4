"""A server of its own process and a browser to look at it; nothing here waits without end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.conftest import missing_part

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Download, Page

# Seconds. A page of any test is done in a third of it on a busy machine, and pytest's own limit is not reached.
_TO_START, _FOR_A_PAGE, _TO_END = 60.0, 180.0, 30.0


@contextmanager
def within(seconds: float, what: str, kill: Callable[[], None], explain: Callable[[], str] = str) -> Iterator[None]:
    """Fails when the block takes longer: ``kill`` ends the process that the block waits for, and so the wait.

    Most calls of Playwright have limits of their own; keys, scripts and closing have none. The error says what
    ``explain`` returns then.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    error: Exception | None = None
    try:
        yield
    except Exception as raised:
        if not late.is_set():
            raise
        error = raised
    finally:
        timer.cancel()
    if late.is_set():
        raise AssertionError(f"{what} took longer than {seconds:g} s and was killed\n{explain()}") from error


def kill_browser() -> None:
    """End the browsers that this process started, and their drivers."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.name() == "node" or "chrom" in process.name():
                process.kill()


@contextmanager
def served(index: Path, *options: str, token: str = "--no-token") -> Iterator[str]:
    """The address of ``vidkin serve`` for an index, to which pages can be added; ``token=""`` is the default."""
    command = [
        sys.executable,
        "-m",
        "vidkin",
        "serve",
        "--index",
        str(index),
        "--port",
        "0",
        *filter(None, (token, *options)),
    ]
    # A server that hangs is aborted, and prints the stack of each thread.
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as server,
    ):
        assert server.stdout is not None

        def abort() -> None:
            server.send_signal(signal.SIGABRT)

        def read_errors() -> str:
            server.wait()
            errors.seek(0)
            return errors.read()

        try:
            with within(_TO_START, "the start of `vidkin serve`", abort, read_errors):
                address = server.stdout.readline().strip().removeprefix("Open ")
            yield address
        finally:
            with within(_TO_END, "the end of `vidkin serve` after Ctrl-C", abort, read_errors):
                server.send_signal(signal.SIGINT)
                server.wait()
        lines = read_errors()
    assert "Traceback" not in lines, lines


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Headless Chromium of this machine; skips the test if there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        missing_part("there is no Chromium; run apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with within(_TO_START, "the start of Chromium", kill_browser):
        steering = sync_playwright().start()
        browser = steering.chromium.launch(executable_path=program, args=["--no-sandbox"])
    try:
        yield browser
    finally:
        with within(_TO_END, "the end of Chromium", kill_browser):
            if browser.is_connected():
                browser.close()
            steering.stop()


@contextmanager
def new_page(
    browser: Browser,
    *,
    width: int = 1440,
    height: int = 900,
    scheme: str = "light",
    seconds: float = _FOR_A_PAGE,
    refused: str = "no such line",
) -> Iterator[Page]:
    """A page that must log no error: no script that fails, nothing that the server or the browser refuses.

    Lines with the word ``refused`` are those that the test means. After ``seconds`` the browser is killed and the test
    fails.
    """
    problems: list[str] = []
    with within(seconds, "a page in Chromium", kill_browser):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
        )
        try:
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on(
                "console",
                lambda line: problems.append(line.text) if line.type == "error" and refused not in line.text else None,
            )
            yield page
        finally:
            if browser.is_connected():
                context.close()
    assert problems == [], problems


def export(page: Page, name: str) -> Download:
    """The file that the menu "Export" of a page offers under this name."""
    page.locator("#export summary").click()
    with page.expect_download() as download:
        page.locator("#export").get_by_role("link", name=name).click()
    return download.value
