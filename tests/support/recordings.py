"""The recordings from which highlight videos are composed."""

from __future__ import annotations

# Duration of each file in seconds.
LENGTHS = {
    "one-by-one-person-detection.mp4": 139.4,
    "car-detection.mp4": 30.1,
    "bottle-detection.mp4": 39.9,
    "crystal.mp4": 12.0,
    "frog.mp4": 8.3,
    "monster.mp4": 7.4,
    "elf.mp4": 8.1,
    "pig.mp4": 6.6,
    "rabbit.mp4": 7.9,
}
