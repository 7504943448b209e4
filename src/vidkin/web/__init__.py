"""The local web app of an index - pages, an HTTP API, and the protection of both."""

from vidkin.web.app import create_app
from vidkin.web.server import serve
from vidkin.web.settings import Settings

__all__ = ["Settings", "create_app", "serve"]
