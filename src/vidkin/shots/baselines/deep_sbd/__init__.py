"""DeepSBD: a 3-D network on segments of 16 frames."""
