"""``vidkin serve``: the index as pages in a browser."""

from __future__ import annotations

import contextlib
import html
import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from vidkin._base.install import install_command
from vidkin._base.temporary import TemporaryFolder, remove_abandoned_folders
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import meter, note, say
from vidkin.cli.options import DeviceOption, IndexOption, open_index, rare_option
from vidkin.errors import CollectionNotFoundError, MissingPartError

_PORT = 8800


def serve(
    folder: Annotated[str | None, typer.Argument(hidden=True)] = None,
    index: IndexOption = DEFAULT_INDEX,
    host: Annotated[str, typer.Option("--host")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535)] = _PORT,
    open_browser: Annotated[bool, typer.Option("--open/--no-open")] = False,
    host_name: Annotated[list[str] | None, rare_option("--host-name")] = None,
    allow_origin: Annotated[list[str] | None, rare_option("--allow-origin", metavar="ORIGIN")] = None,
    token: Annotated[str | None, rare_option("--token", envvar="VIDKIN_TOKEN")] = None,
    no_token: Annotated[bool, rare_option("--no-token")] = False,
    read_only: Annotated[bool, typer.Option("--read-only")] = False,
    experiments: Annotated[list[Path] | None, rare_option("--experiments", exists=True, file_okay=False)] = None,
    device: DeviceOption = "auto",
    create: Annotated[bool, typer.Option("--create")] = False,
    cluster: str | None = None,
) -> None:
    """Show the index in a browser: library, search by example, where videos match.

    Serves until Ctrl-C. Only this computer can reach it, unless --host says otherwise, and only with the printed
    address, or with its token as `Authorization: Bearer TOKEN`. VIDKIN_TOKEN names a token of your own; rare options
    (host-name, allow-origin, experiments) go into the section [serve] of the configuration file.

    Args:
        host: Address to listen on; on any but the default, other computers can connect with the printed token.
        port: Port; 0 picks a free one.
        open_browser: Open the page in a browser.
        read_only: Only show; change nothing.
        create: Create the index if there is none; add folders in the browser.
    """
    # Other servers take the folder that they show as an argument.
    index = folder or index
    if no_token and token is not None:
        raise typer.BadParameter("--no-token and --token (or VIDKIN_TOKEN) contradict each other; use one of them")
    with meter("starting"):
        try:
            from vidkin import web
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("vidkin"):
                raise
            raise MissingPartError(
                f"`vidkin serve` needs {error.name}, which is not installed; run {install_command('web')}"
            ) from error
    if create and not read_only:
        open_index(index, writing=True, create=True).close()
    settings = web.Settings(
        token=token,
        hosts=frozenset(host_name or ()),
        origins=frozenset(origin.lower().rstrip("/") for origin in allow_origin or ()),
        read_only=read_only,
        experiments=tuple(folder.absolute() for folder in experiments or ()),
        cluster=cluster,
    )

    def show_address(address: str) -> None:
        say(f"Open {address}", style="bold")
        note("Ctrl-C ends the server.")
        if no_token:
            note("Without a token every account of this computer can see and change what is here.", style="yellow")
        if open_browser:
            webbrowser.open(address if no_token else _write_link(private.path, address))

    remove_abandoned_folders()
    private = TemporaryFolder()
    # Ctrl-C is how a server ends, not an interruption of it.
    with contextlib.closing(private), contextlib.suppress(KeyboardInterrupt):
        try:
            web.serve(index, host=host, port=port, settings=settings, needs_token=not no_token, on_ready=show_address)
        except CollectionNotFoundError as error:
            raise CollectionNotFoundError(_describe_missing_index(index)) from error


def _describe_missing_index(index: str) -> str:
    """Advice for a missing index; users often name a folder of videos instead of its index."""
    with contextlib.suppress(OSError):
        if any(Path(index).iterdir()):
            return f"{index} is a folder without an index; run `vidkin index {shlex.quote(index)}`, then `vidkin serve`"
    option = "" if index == DEFAULT_INDEX else f" --index {shlex.quote(index)}"
    return (
        f"there is no index at {index}; make one with `vidkin index FOLDER{option}`, or run "
        f"`vidkin serve{option} --create` and add folders in the browser"
    )


def _write_link(folder: Path, address: str) -> str:
    """Address of a page that leads to another address, and that only this account can read.

    Every account of the machine can see the command line of a browser, and with it a token.
    """
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        '<!doctype html><meta charset="utf-8"><title>vidkin</title>'
        f'<meta http-equiv="refresh" content="0;url={html.escape(address)}">'
        f'<a href="{html.escape(address)}">vidkin</a>\n',
        encoding="utf-8",
    )
    return page.as_uri()
