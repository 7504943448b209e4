"""From packets to upright 8-bit RGB frames at their real times."""
