"""Room datasets: labelled collections, and a sample collection that needs no download."""

from vidkin.datasets.photographs import PHOTOGRAPHS, camera_flight, photograph
from vidkin.datasets.samples import SampleCollection, SampleCopy, build_samples

__all__ = [
    "PHOTOGRAPHS",
    "SampleCollection",
    "SampleCopy",
    "build_samples",
    "camera_flight",
    "photograph",
]
