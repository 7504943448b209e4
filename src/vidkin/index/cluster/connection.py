"""The connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vidkin.errors import ClusterError, InvalidArgumentError, MissingPartError

__all__ = ["check_address", "connect", "import_ray"]

# What Ray reads when it is imported or started; a variable that is set already stays.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Otherwise every start warns that workers without a GPU will see the machine's GPUs in later versions.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_ADDRESS = re.compile(r"\[?([\w.:-]+?)\]?:(\d{1,5})")
# Ray itself tries for minutes.
_ANSWER_TIMEOUT = 5.0


def import_ray() -> Any:
    """The package, told to send no statistics.

    Raises:
        MissingPartError: It is not installed.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise MissingPartError(
            'Ray is not installed; work on a cluster needs it: run pip install "vidkin[ray]"'
        ) from error
    return ray


def check_address(address: str) -> tuple[str, int] | None:
    """Host and port of an address; None for ``auto`` and ``local``.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if address in ("auto", "local"):
        return None
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InvalidArgumentError(
            f"a Ray address must be HOST:PORT, auto (the cluster of this machine) or local (one for this run), got "
            f"{address}; a ray:// address is not enough: run vidkin on a machine of the cluster"
        )
    return parts[1], int(parts[2])


@contextmanager
def connect(address: str | None = None) -> Iterator[Any]:
    """The package ``ray``, connected to a cluster while the block runs.

    A connection that the program has already is used, and left open.

    Args:
        address: ``HOST:PORT`` of a cluster that this machine is a part of; ``auto``: the one that was started on this
            machine (`ray start`); ``local``: one for the time of the block, on this machine alone. Default what
            ``RAY_ADDRESS`` says, or else ``local``.

    Raises:
        MissingPartError: Ray is not installed.
        InvalidArgumentError: The address is not one.
        ClusterError: No cluster answers there.
    """
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    place = check_address(address)
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    if place is not None:
        _check_answer(address, *place)
    _silence()
    try:
        options = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"} if address == "local" else {}
        ray.init(
            address=address,
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
            namespace="vidkin",
            **options,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"{address}: cannot connect to the Ray cluster: {' '.join(str(error).split())}; start one with `ray start "
            "--head`, or let this machine join it with `ray start --address HOST:PORT`"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answer(address: str, host: str, port: int) -> None:
    """Ray would wait for minutes for a host that does not answer, and end the program then."""
    try:
        socket.create_connection((host, port), timeout=_ANSWER_TIMEOUT).close()
    except OSError as error:
        raise ClusterError(
            f"{address}: no Ray cluster answers there ({error.strerror or error}); check the address with "
            "`ray status --address HOST:PORT`"
        ) from error


def _silence() -> None:
    """Keep news of dead workers off the standard output, where results go; the executor reports what they cost."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None
