"""One training in several processes: each computes a share of every batch, and all take the same step."""
