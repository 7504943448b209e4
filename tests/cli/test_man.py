"""The manual page."""

from __future__ import annotations

import typer

from tests.cli.conftest import run
from vidkin.cli.app import app


def test_it_has_every_command_with_every_option() -> None:
    page = run("man").out
    plain = page.replace("\\-", "-")
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f".SS vidkin {name}" in plain
        for part in getattr(command, "params", ()):
            if part.param_type_name == "option" and not part.hidden:
                assert part.opts[0] in plain, (name, part.opts)
    assert "VIDKIN_INDEX" in plain
    # A line that begins with a dot or a quote would be taken for a command of the page.
    commands = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert commands <= {".TH", ".SH", ".SS", ".B", ".TP", ".PP"}
    assert "\\n" not in page
