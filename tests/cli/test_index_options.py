"""The options of ``vidkin index``: which its help shows, and that the guide has the others."""

from __future__ import annotations

from pathlib import Path

import typer

from vidkin.cli.app import app


def test_rare_options_are_documented_only_in_the_guide() -> None:
    docs = Path(__file__).parents[2] / "docs"
    guide = (docs / "find.md").read_text(encoding="utf-8") + (docs / "commands.md").read_text(encoding="utf-8")
    command = typer.main.get_command(app).commands["index"]  # type: ignore[attr-defined]
    # That of the stand-in for other packages is in no guide.
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "stand_in"]
    names = {name for option in options if option.hidden for name in (*option.opts, *option.secondary_opts)}
    hidden = {name for name in names if name.startswith("--")}
    shown = {name for option in options if not option.hidden for name in option.opts if name.startswith("--")}
    assert {"--weights", "--whitening", "--rate", "--wait", "--retry-broken"} < hidden
    assert len(shown) <= 10
    assert [name for name in sorted(hidden) if f"`{name}" not in guide] == []
