"""What a training step gets: items, batches, and the order they come in."""
