"""Key frames at which a file can be split, and the piece of every packet, computed from handwritten packets."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace

import pytest

from vidkin.errors import MediaError
from vidkin.media.split_at_keys import SplitPlan, plan_split

VIDEO, SOUND = 0, 1
TICK = Fraction(1, 10)


@dataclass
class Packet:
    pts: int | None
    stream_index: int = VIDEO
    is_keyframe: bool = False
    duration: int | None = 1
    dts: int | None = None
    size: int = 1
    is_discard: bool = False


@dataclass
class Container:
    """The parts of an open file that the planner uses."""

    packets: list[Packet]
    streams: list[SimpleNamespace] = field(
        default_factory=lambda: [SimpleNamespace(index=index, time_base=TICK) for index in (VIDEO, SOUND)]
    )

    def demux(self, streams: list[SimpleNamespace]) -> list[Packet]:
        indices = {stream.index for stream in streams}
        return [packet for packet in self.packets if packet.stream_index in indices]


def groups_of(*groups: str, first: int = 0) -> list[Packet]:
    """Packets in file order; digits are times relative to the key frame of the group, which has 0."""
    packets, start = [], first
    for group in groups:
        packets += [Packet(start + int(time), is_keyframe=place == 0) for place, time in enumerate(group)]
        start += len(group)
    return packets


def plan(packets: list[Packet], *starts: float, unwanted: tuple[int, ...] = ()) -> SplitPlan:
    container = Container(packets)
    return plan_split("a.mp4", container, container.streams[VIDEO], {VIDEO, SOUND}, starts, unwanted)  # type: ignore[arg-type]


def test_a_piece_begins_at_the_key_frame_at_or_before_its_start() -> None:
    made = plan(groups_of("01234", "01234", "01234"), 0.0, 0.5, 1.3)
    assert made.starts() == [0.0, 0.5, 1.0]
    assert made.owners == [0, 1, 2]
    assert made.pieces == [0] * 5 + [1] * 5 + [2] * 5
    assert (made.base, made.end, made.tick) == (0, 15, TICK)


def test_segments_in_one_group_share_a_piece() -> None:
    made = plan(groups_of("01234", "01234"), 0.0, 0.2, 0.7)
    assert made.starts() == [0.0, 0.5]
    assert made.owners == [0, 0, 1]


def test_reordered_frames_within_a_group_are_allowed() -> None:
    assert plan(groups_of("03124", "03124"), 0.0, 0.6).starts() == [0.0, 0.5]


def test_a_video_is_not_split_at_an_open_group() -> None:
    # The second key frame (time 5) is followed by a frame with time 4, which is shown before it.
    packets = groups_of("0123")
    packets += [Packet(5, is_keyframe=True), Packet(4), Packet(6), *groups_of("012", first=7)]
    assert plan(packets, 0.0, 0.5, 0.7).starts() == [0.0, 0.7]


def test_times_are_counted_from_the_first_frame() -> None:
    made = plan(groups_of("012", "012", first=40), 0.0, 0.3)
    assert (made.base, made.starts()) == (40, [0.0, 0.3])


def test_a_rounded_start_finds_its_key_frame() -> None:
    assert plan(groups_of("012", "012"), 0.0, 0.3 - 1e-9).starts() == [0.0, 0.3]
    assert plan(groups_of("012", "012"), 0.0, 0.2).starts() == [0.0]


def test_sound_is_assigned_by_time_and_untimed_packets_follow_the_previous_one() -> None:
    packets = groups_of("012", "012")
    packets.insert(1, Packet(0, SOUND))
    packets += [Packet(2, SOUND), Packet(3, SOUND), Packet(None, SOUND)]
    assert plan(packets, 0.0, 0.3).pieces == [0, 0, 0, 0, 1, 1, 1, 0, 1, 1]


def test_unwanted_segment_leaves_its_neighbors_complete() -> None:
    groups = groups_of("01234", "01234", "01234")
    # The middle segment begins at 0.7; its frames up to the next key frame stay in the previous piece.
    made = plan(groups, 0.0, 0.7, 1.3, unwanted=(1,))
    assert made.owners[0] == 0
    assert made.pieces.count(0) == 10


def test_last_frame_without_a_duration_gets_the_usual_one() -> None:
    packets = [Packet(0, is_keyframe=True), Packet(2), Packet(4, duration=None)]
    assert plan(packets, 0.0).end == 6
    assert plan([Packet(7, is_keyframe=True, duration=None)], 0.0).end == 7


def test_hidden_frames_do_not_count() -> None:
    packets = groups_of("012")
    packets.insert(0, Packet(-1, is_keyframe=True, is_discard=True))
    assert plan(packets, 0.0).base == 0


def test_videos_without_times_or_frames_are_refused() -> None:
    with pytest.raises(MediaError, match="its frames have no times, so it cannot be split"):
        plan([Packet(None, is_keyframe=True)], 0.0)
    with pytest.raises(MediaError, match="it has no frames"):
        plan([Packet(0, SOUND)], 0.0)
