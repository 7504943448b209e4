"""From files on disk to records, features and windows."""
