"""Addresses of clusters, and clusters that cannot be reached."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.index.helpers import PLAIN
from vidkin.errors import ClusterError, InvalidArgumentError
from vidkin_scale import connection
from vidkin_scale.connection import check_address, connect
from vidkin_scale.executor import RayExecutor


def test_valid_cluster_addresses_are_parsed() -> None:
    assert check_address("auto") is None
    assert check_address("local") is None
    assert check_address("10.0.0.5:6379") == ("10.0.0.5", 6379)
    assert check_address("[::1]:6379") == ("::1", 6379)


@pytest.mark.parametrize("address", ["head", "ray://head:10001", ":6379", "a b:1"])
def test_invalid_cluster_addresses_are_rejected_before_work_starts(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"a Ray address must be HOST:PORT, auto .* or local"):
        RayExecutor(PLAIN, address=address)


def test_number_of_workers_must_be_positive() -> None:
    with pytest.raises(InvalidArgumentError, match="workers must be at least 1, got 0"):
        RayExecutor(PLAIN, workers=0)


def test_address_without_a_cluster_is_rejected_immediately() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no listener
        port = taken.getsockname()[1]
        began = time.monotonic()
        with (
            pytest.raises(ClusterError, match=f"127.0.0.1:{port}: no Ray cluster answers there"),
            connect(f"127.0.0.1:{port}"),
        ):
            pass
        assert time.monotonic() - began < 10


@pytest.mark.large
@pytest.mark.parametrize(
    ("greeting", "cause"),
    [(b"", "no Ray cluster answers there"), (b"SSH-2.0-OpenSSH_9.9\r\n", "another program answers there")],
)
def test_connecting_to_a_program_other_than_ray_names_the_cause(
    greeting: bytes, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ANSWER_TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as client:
                client.sendall(greeting)
                client.recv(100)
                time.sleep(1.0)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClusterError, match=f"127.0.0.1:{port}: {cause}"), connect(f"127.0.0.1:{port}"):
            pass
        thread.join()


def test_no_connection_is_opened_without_files() -> None:
    assert list(RayExecutor(PLAIN, address="127.0.0.1:9").run([])) == []
