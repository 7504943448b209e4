"""Studies behind vidkin's measurements, and parts that vidkin finds through entry points."""

__version__ = "0.2.0"
