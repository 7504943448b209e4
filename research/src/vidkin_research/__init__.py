"""The studies behind vidkin's measurements; whatever vidkin calls by name comes through entry points."""

__version__ = "0.2.0"
