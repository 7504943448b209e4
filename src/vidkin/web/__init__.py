"""The local web app for an index: pages, an HTTP API, and their protection."""

from vidkin.web.app import create_app
from vidkin.web.files import requested_range
from vidkin.web.guard import Guard, Settings
from vidkin.web.server import serve

__all__ = [
    "Guard",
    "Settings",
    "create_app",
    "requested_range",
    "serve",
]
