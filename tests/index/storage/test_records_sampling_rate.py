"""How often parts of the picture are described."""

from __future__ import annotations

import pytest

from vidkin.index.storage.records import part_rate


@pytest.mark.parametrize(("duration", "rate"), [(0.0, None), (8.0, None), (59.9, None), (60.0, 0.5), (7200.0, 0.5)])
def test_parts_of_long_videos_are_described_every_two_seconds(duration: float, rate: float | None) -> None:
    assert part_rate(duration) == rate
