"""A server for indexes on object storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.s3_server import S3Server, serve_s3


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server with the bucket "bucket", which the environment names."""
    with serve_s3("bucket") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
