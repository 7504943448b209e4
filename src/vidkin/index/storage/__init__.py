"""Storage of an index: records, features and windows of videos, and their locations."""
