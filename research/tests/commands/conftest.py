"""Run every command test in its own folder."""

from tests.cli.conftest import _own_folder

__all__ = ["_own_folder"]
