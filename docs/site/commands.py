"""Write docs/commands.md from the commands of the program: ``python docs/site/commands.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from vidkin.cli.app import app

_SHARED = ("--device", "--weights", "--whitening", "--extractor", "--workers")
_BROUGHT = ("--ray", "--shards", "--stand-in")
PAGE = Path(__file__).resolve().parents[1] / "commands.md"


def command_table() -> str:
    """The page: a row for each command, and for each one inside a group, with the first sentence of its help."""
    rows = []
    for name, command in _built_in(typer.main.get_command(app)):
        inner = list(_built_in(command))
        rows += [(f"{name} {word}", one) for word, one in inner] or [(name, command)]
    lines = [
        "# Commands",
        "",
        "`python docs/site/commands.py` writes this page. Every command explains its options with `--help`, and",
        "`vidkin-research` adds `vidkin benchmark`, `vidkin fit`, `vidkin labels` and `vidkin train-shots`.",
        "",
        "| command | description | rare options |",
        "|---|---|---|",
        *(f"| `{name}` | {_first_sentence(command.help)} | {_rare_options(name, command)} |" for name, command in rows),
        "",
        "Rare options are not in the help; most belong into the section of the command in the",
        f"[configuration file](start.md#your-own-defaults). Many commands also have {_listed(_SHARED)}.",
    ]
    return "\n".join([*lines, ""])


def _rare_options(name: str, command: Any) -> str:
    """The options of a command that its help leaves out, as code."""
    if name == "index":
        return "[guide](find.md#index-a-folder)"
    hidden = [
        option for option in command.params if getattr(option, "hidden", False) and option.param_type_name == "option"
    ]
    return _listed([option.opts[0] for option in hidden if option.opts[0] not in (*_SHARED, *_BROUGHT)])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _built_in(group: Any) -> list[tuple[str, Any]]:
    """The commands of a group that come with vidkin itself, whatever else is installed."""
    return [(name, group.commands[name]) for name in getattr(group, "built_in", ())]


def _first_sentence(text: str) -> str:
    words = " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."
    return words.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(command_table(), encoding="utf-8")
