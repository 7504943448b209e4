"""The items drawn for each step of a training."""
