"""vidkin for millions of videos: Ray clusters, object storage and sharded stores, found through entry points."""

__version__ = "0.2.0"
