"""The local web app of an index - pages, an HTTP API, and the protection of both."""

from vidkin.web.app import create_app
from vidkin.web.guard import Settings
from vidkin.web.server import serve

__all__ = ["Settings", "create_app", "serve"]
