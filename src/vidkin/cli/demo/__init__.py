"""The guided demonstration of ``vidkin demo``."""
