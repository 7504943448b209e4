"""Pictures of what a classifier with an embedding head does."""
