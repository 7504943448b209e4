"""Remove duplicates: a plan, logged steps, and undo."""
