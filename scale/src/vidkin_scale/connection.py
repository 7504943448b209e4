"""Connect to a Ray cluster."""

from __future__ import annotations

import logging
import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vidkin.errors import ClusterError, InvalidArgumentError

# Environment variables that Ray reads on import or start; values set by the user take precedence.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Avoids a warning at every start that later versions will show GPUs to workers without one.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_ADDRESS = re.compile(r"\[?([\w.:-]+?)\]?:(\d{1,5})")
# Seconds to wait for an answer; Ray itself would retry for minutes.
_ANSWER_TIMEOUT = 5.0
# A cluster speaks gRPC, so it answers the HTTP/2 preface and an empty SETTINGS frame with a SETTINGS frame.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_FRAME_HEAD, _SETTINGS = 9, 4


def import_ray() -> Any:
    """Import Ray with usage statistics turned off."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    return ray


def check_address(address: str) -> tuple[str, int] | None:
    """Parse an address into host and port; None for ``auto`` and ``local``.

    Raises:
        InvalidArgumentError: The address is invalid.
    """
    if address in ("auto", "local"):
        return None
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InvalidArgumentError(
            f"a Ray address must be HOST:PORT, auto (the cluster on this machine) or local (one for this run), got "
            f"{address}; ray:// addresses are not supported: run vidkin on a machine in the cluster"
        )
    return parts[1], int(parts[2])


@contextmanager
def connect(address: str | None = None) -> Iterator[Any]:
    """Yield the package ``ray``, connected to a cluster while the block runs.

    An existing connection of the program is reused and left open.

    Args:
        address: ``HOST:PORT`` of a cluster that this machine belongs to; ``auto``: the cluster started on this machine
            (`ray start`); ``local``: a cluster for the duration of the block on this machine alone. Default:
            ``RAY_ADDRESS``, otherwise ``local``.

    Raises:
        InvalidArgumentError: The address is malformed.
        ClusterError: No cluster answers at the address.
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
        with warnings.catch_warnings():
            # Ray starts other programs, which do not use tables opened here.
            warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
            ray.init(
                address=address,
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                namespace="vidkin",
                **options,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        # Ray sends a token to a cluster found on this machine, but to an address only if configured.
        asks = place is not None and os.environ.get("RAY_AUTH_MODE", "").lower() != "token"
        remedy = "; if the cluster was started with a token, set RAY_AUTH_MODE=token" if asks else ""
        raise ClusterError(
            f"{address}: cannot connect to the Ray cluster: {' '.join(str(error).split())}; start one with `ray start "
            f"--head`, or let this machine join it with `ray start --address HOST:PORT`{remedy}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answer(address: str, host: str, port: int) -> None:
    """Fail early: Ray would wait minutes for a host that does not answer, and then end the program."""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_TIMEOUT) as connection:
            if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
                return
            connection.sendall(_GREETING)
            answer = connection.recv(_FRAME_HEAD, socket.MSG_WAITALL)
    except OSError as error:
        raise ClusterError(
            f"{address}: no Ray cluster answers there ({error.strerror or error}); check the address with "
            "`ray status --address HOST:PORT`"
        ) from error
    if len(answer) < _FRAME_HEAD or answer[3] != _SETTINGS:
        raise ClusterError(
            f"{address}: another program answers there, not a Ray cluster; `ray start --head` prints the address of one"
        )


def _silence() -> None:
    """Keep reports of dead workers off standard output, which is for results; the executor reports failed files.

    Ray also logs how it authenticates at every start.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None
