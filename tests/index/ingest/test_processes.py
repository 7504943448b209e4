"""Worker processes that crash, hang or raise unexpected errors."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.index.helpers import FATAL, PLAIN, color_video, open_plain, outcomes_of, video, write_videos
from vidkin.errors import ExtractorError, UnknownExtractorError
from vidkin.index import Advanced, Described, Idle, ProcessExecutor, SerialExecutor, Unreadable, WorkerSpec
from vidkin.index.ingest import executor as serial
from vidkin.index.ingest.worker import Channel

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_videos(tmp_path_factory.mktemp("videos"), 3)


def test_worker_processes_give_the_same_results_as_one_process(videos: list[str], tmp_path: Path) -> None:
    text = tmp_path / "text.mp4"
    text.write_text("hello")
    paths = [*videos, str(text)]
    here = outcomes_of(SerialExecutor(PLAIN).run(paths))
    events = list(ProcessExecutor(PLAIN, workers=2).run(paths))
    there = outcomes_of(events)
    assert set(here) == set(there) == set(paths)
    for path in videos:
        one, other = here[path], there[path]
        assert isinstance(one, Described)
        assert isinstance(other, Described)
        assert one.info == other.info
        assert len(one.features.timestamps) == 4
        for name in ("values", "timestamps", "information"):
            assert np.array_equal(getattr(one.features, name), getattr(other.features, name))
        # Progress adds up to the total.
        assert sum(e.frames for e in events if isinstance(e, Advanced) and e.path == path) == 4
    assert here[str(text)] == there[str(text)]
    assert isinstance(there[str(text)], Unreadable)


def test_each_kind_of_worker_death_affects_one_file(videos: list[str], tmp_path: Path) -> None:
    fatal = {what: str(color_video(tmp_path / f"{what}.mp4", what)) for what in ("segfault", "exit", "killed")}
    paths = [videos[0], fatal["segfault"], videos[1], fatal["exit"], fatal["killed"], videos[2]]
    outcomes = outcomes_of(ProcessExecutor(FATAL, workers=2).run(paths))
    assert {path for path, event in outcomes.items() if isinstance(event, Described)} == set(videos)
    causes = {what: getattr(outcomes[path], "cause", None) for what, path in fatal.items()}
    assert causes == {
        "segfault": "decoder process was killed by signal SIGSEGV",
        "exit": "decoder process exited with status 3",
        "killed": "decoder process was killed by signal SIGKILL, possibly for lack of memory",
    }
    # Only a crash is attributed to the file, not an external signal.
    assert {what: getattr(outcomes[path], "temporary", None) for what, path in fatal.items()} == {
        "segfault": False,
        "exit": True,
        "killed": True,
    }


def test_hang_affects_one_file(videos: list[str], tmp_path: Path) -> None:
    hanging = str(color_video(tmp_path / "hang.mp4", "hang"))
    events = list(ProcessExecutor(FATAL, workers=1, hang_timeout=1.0).run([hanging, videos[0]]))
    outcomes = outcomes_of(events)
    assert outcomes[hanging] == Unreadable(hanging, "the extractor hung: no progress for 5 s", temporary=True)
    assert isinstance(outcomes[videos[0]], Described)
    assert any(isinstance(event, Idle) for event in events)


def test_hanging_decoder_affects_one_file(videos: list[str]) -> None:
    spec = WorkerSpec("plain", open_extractor=_open_with_a_decoder_that_hangs)
    outcomes = outcomes_of(ProcessExecutor(spec, workers=1, hang_timeout=1.0).run(videos[:1]))
    cause = "the decoder hung: no progress for 1 s"
    assert outcomes == {videos[0]: Unreadable(videos[0], cause, temporary=True)}


def _open_with_a_decoder_that_hangs(name: str, **options: object) -> object:
    serial.open_probed = lambda *_, **__: time.sleep(3600)  # type: ignore[assignment]
    return open_plain(name, **options)


def test_worker_that_stops_in_the_middle_of_a_message_is_replaced(videos: list[str]) -> None:
    spec = WorkerSpec("plain", open_extractor=_open_with_a_channel_that_stalls)
    outcomes = outcomes_of(ProcessExecutor(spec, workers=1, hang_timeout=1.0).run(videos[:1]))
    assert outcomes[videos[0]] == Unreadable(videos[0], "the extractor hung: no progress for 5 s", temporary=True)


def _open_with_a_channel_that_stalls(name: str, **options: object) -> object:
    send = Channel.send

    def stall(channel: Channel, message: object) -> None:
        if isinstance(message, Described):
            os.write(channel.fileno(), struct.pack("!Q", 1000) + b"a part of it")
            time.sleep(3600)
        send(channel, message)

    Channel.send = stall  # type: ignore[method-assign]
    return open_plain(name, **options)


def test_time_while_the_caller_is_busy_does_not_count_as_a_hang(tmp_path: Path) -> None:
    """Caller and worker both pause for longer than the hang timeout, as during system sleep."""
    path = str(video(tmp_path / "long.mp4", frames=400))
    before = set(_children(os.getpid()))
    run = ProcessExecutor(PLAIN, workers=1, hang_timeout=2.0).run([path])
    while not isinstance(event := next(run), Advanced):
        pass
    (worker,) = set(_children(os.getpid())) - before
    os.kill(worker, signal.SIGSTOP)
    time.sleep(3.0)
    waking = threading.Timer(0.5, os.kill, [worker, signal.SIGCONT])
    waking.start()
    events = [event, *run]
    assert isinstance(outcomes_of(events)[path], Described)


def test_unexpected_exception_affects_one_file_and_has_a_traceback(videos: list[str], tmp_path: Path) -> None:
    path = str(color_video(tmp_path / "bug.mp4", "bug"))
    outcomes = outcomes_of(ProcessExecutor(FATAL, workers=1).run([path, videos[0]]))
    event = outcomes[path]
    assert isinstance(event, Unreadable)
    assert event.cause == "internal error: ZeroDivisionError: a bug in an extractor"
    assert event.temporary
    assert "helpers.py" in event.trace
    assert isinstance(outcomes[videos[0]], Described)


def test_extractor_that_cannot_be_opened_reports_the_cause(videos: list[str]) -> None:
    with pytest.raises(UnknownExtractorError, match="'nonsense' is not an extractor"):
        list(ProcessExecutor(WorkerSpec("nonsense"), workers=1).run(videos))


def test_worker_that_cannot_start_reports_the_cause(videos: list[str]) -> None:
    spec = WorkerSpec("plain", open_extractor=_open_in_a_way_that_exits)
    with pytest.raises(RuntimeError, match=r"exited with status 7 before it could start"):
        list(ProcessExecutor(spec, workers=1).run(videos))


def _open_in_a_way_that_exits(name: str, **_: object) -> None:
    os._exit(7)


def test_worker_killed_during_startup_is_restarted(videos: list[str], tmp_path: Path) -> None:
    spec = WorkerSpec(str(tmp_path), open_extractor=_open_after_two_deaths)
    outcomes = outcomes_of(ProcessExecutor(spec, workers=1).run(videos))
    assert all(isinstance(outcomes[path], Described) for path in videos)
    assert len(list(tmp_path.iterdir())) == 3


def test_workers_killed_repeatedly_end_the_run(videos: list[str]) -> None:
    spec = WorkerSpec("plain", open_extractor=_open_in_a_way_that_kills)
    with pytest.raises(ExtractorError, match=r"killed by signal SIGKILL 4 times .* run it again with fewer workers"):
        list(ProcessExecutor(spec, workers=1).run(videos))


def _open_after_two_deaths(name: str, **options: object) -> object:
    starts = len(list(Path(name).iterdir()))
    (Path(name) / str(starts)).touch()
    if starts < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return open_plain("plain", **options)


def _open_in_a_way_that_kills(name: str, **_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_empty_input_starts_no_workers() -> None:
    assert list(ProcessExecutor(PLAIN, workers=4).run([])) == []


def test_closing_early_stops_the_workers(videos: list[str]) -> None:
    before = set(_children(os.getpid()))
    run = ProcessExecutor(PLAIN, workers=1).run(videos)
    while not isinstance(next(run), Advanced):
        pass
    children = set(_children(os.getpid())) - before
    assert len(children) == 1
    run.close()
    assert not any(_alive(child) for child in children)


def test_workers_exit_when_their_parent_is_killed(tmp_path: Path) -> None:
    hanging = str(color_video(tmp_path / "hang.mp4", "hang"))
    code = (
        "import sys\nfrom tests.index.helpers import FATAL\nfrom vidkin.index import ProcessExecutor\n"
        "for event in ProcessExecutor(FATAL, workers=2).run([sys.argv[1]] * 2): print('on', flush=True)"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        [sys.executable, "-c", code, hanging], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "on\n"
        _wait_for(lambda: len(_children(parent.pid)) == 2)
        children = _children(parent.pid)
        parent.send_signal(signal.SIGKILL)
        _wait_for(lambda: not any(_alive(child) for child in children))


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen within 30 s"
        time.sleep(0.02)
