"""Training data: items read once and drawn as batches in a fixed order."""
