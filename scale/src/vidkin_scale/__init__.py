"""vidkin for collections of millions; what vidkin calls by name comes through entry points."""

__version__ = "0.2.0"
