"""One training on several processes: each takes a share of every batch, and all take the same step."""
