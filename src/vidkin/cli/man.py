"""``vidkin man``: the manual page, made from the help of all commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from vidkin._version import __version__
from vidkin.cli.commands import argument_words

_EXIT_STATUS = (
    ("0", "done"),
    ("1", "some inputs failed"),
    ("2", "usage error"),
    ("3", "nothing usable"),
    ("130", "interrupted"),
)
_FILES = (
    ("./collection.vidkin", "The index, unless --index or VIDKIN_INDEX names another."),
    ("~/.config/vidkin/config.toml", "Defaults of options: a table for each command, such as [search]."),
    ("INDEX/config.toml", "The same for one index, only for what is shown; it comes before the file above."),
)


def man(context: typer.Context) -> None:
    """Print the manual page; `vidkin man | man -l -` shows it."""
    typer.echo(write_man_page(context.find_root().command), nl=False)


def write_man_page(program: Any) -> str:
    """The manual page of a program in the language of man pages.

    Args:
        program: The program's Click group of commands.
    """
    lines = [
        f'.TH VIDKIN 1 "" "vidkin {__version__}"',
        ".SH NAME",
        "vidkin \\- find related video",
        ".SH SYNOPSIS",
        ".B vidkin",
        "[options] command [arguments]",
        ".SH DESCRIPTION",
        _roff(_paragraph(program.help)),
        ".SH OPTIONS",
        *_options(program),
        ".SH COMMANDS",
    ]
    for name, command in program.commands.items():
        inner = getattr(command, "commands", None)
        for title, one in [(name, command)] if inner is None else [(f"{name} {n}", c) for n, c in inner.items()]:
            names = argument_words(one)
            usage = " ".join([title, "[options]", *names])
            lines += [f".SS vidkin {_roff(usage)}", _roff(_paragraph(one.help))]
            lines += _options(one)
    lines += [".SH EXIT STATUS", *_list_terms(_EXIT_STATUS)]
    lines += [".SH ENVIRONMENT", *_list_terms([("VIDKIN_INDEX", "Folder of the index.")])]
    lines += [".SH FILES", *_list_terms(_FILES)]
    return "\n".join(line for line in lines if line) + "\n"


def _options(command: Any) -> Iterator[str]:
    for part in command.params:
        if part.param_type_name == "option" and not part.hidden:
            names = "/".join(filter(None, [", ".join(part.opts), ", ".join(part.secondary_opts)]))
            value = "" if part.is_flag else f" {part.metavar or str(part.name).upper()}"
            yield from (".TP", f".B {_roff(names + value)}", _roff(part.help or ""))


def _list_terms(pairs: Any) -> Iterator[str]:
    for name, text in pairs:
        yield from (".TP", f".B {_roff(name)}", _roff(text))


def _paragraph(text: str | None) -> str:
    return "\n.PP\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def _roff(text: str) -> str:
    """Escape backslashes, dashes (else hyphens), and dots and quotes at the start of a line (else commands)."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(line if line == ".PP" or line[:1] not in (".", "'") else f"\\&{line}" for line in lines)
