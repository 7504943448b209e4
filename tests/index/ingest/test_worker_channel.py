"""Messages that arrive in parts, and a closed connection."""

from __future__ import annotations

import pickle
import struct
import threading

import pytest

from vidkin.index.ingest.worker import Channel


def frame_message(message: object) -> bytes:
    content = pickle.dumps(message)
    return struct.pack("!Q", len(content)) + content


def test_messages_arrive_in_order_and_one_at_a_time() -> None:
    ours, theirs = Channel.pair()
    theirs.sendall(frame_message("one") + frame_message([2]) + frame_message(None))
    assert ours.receive_part() == ["one"]
    assert ours.receive() == [2]
    assert ours.receive_part() == [None]
    assert ours.receive_part() == []
    ours.close()
    theirs.close()


def test_message_may_arrive_in_parts() -> None:
    ours, theirs = Channel.pair()
    for byte in frame_message({"name": "x"})[:-1]:
        theirs.sendall(bytes([byte]))
        assert ours.receive_part() == []
    theirs.sendall(frame_message({"name": "x"})[-1:])
    assert ours.receive_part() == [{"name": "x"}]
    ours.close()
    theirs.close()


def test_message_larger_than_the_buffer_is_delivered() -> None:
    ours, theirs = Channel.pair()
    other = Channel(theirs)
    message = bytes(5_000_000)
    sender = threading.Thread(target=other.send, args=[message])
    sender.start()
    assert ours.receive() == message
    sender.join()
    ours.close()
    other.close()


def test_channel_raises_if_the_other_side_closed() -> None:
    ours, theirs = Channel.pair()
    theirs.sendall(frame_message("half of it")[:-3])
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive_part()
    with pytest.raises(ConnectionError):
        ours.send(bytes(1_000_000))
    ours.close()
