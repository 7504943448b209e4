"""Plugins for all tests, also when only those of research/ or scale/ run."""

from __future__ import annotations

pytest_plugins = ["tests.support.budget", "tests.support.lanes", "tests.support.light"]
