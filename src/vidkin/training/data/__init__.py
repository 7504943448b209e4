"""The data of a training: items read once, drawn in a fixed order, as batches."""
