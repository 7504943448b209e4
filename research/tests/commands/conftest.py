"""The folder of one's own that every command of vidkin is tested in."""

from tests.cli.conftest import _own_folder

__all__ = ["_own_folder"]
