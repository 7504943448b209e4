"""Studies behind vidkin's measurements, and plug-ins that vidkin discovers through entry points."""

__version__ = "0.2.0"
