"""Work that outlives a request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.web.jobs import Job, JobRunningError, Jobs, JobState


def finish(job: Job) -> JobState:
    """The last state; fails after ten seconds."""
    for _ in range(1000):
        if not job.is_running:
            return job.state()
        time.sleep(0.01)
    raise AssertionError("the job does not end")


def start(jobs: Jobs, work: Callable[[Job], object], kind: str = "test") -> Job:
    return jobs.start(kind, "A test", work)


def test_job_state_has_progress_notes_and_result() -> None:
    jobs, gate = Jobs(), threading.Event()

    def work(job: Job) -> object:
        job.report(1, 3, "one\x1b[2J")
        job.note("a line")
        assert gate.wait(10)
        return {"answer": (1, 2)}

    job = start(jobs, work)
    while not job.state().notes:
        time.sleep(0.01)
    state = job.state()
    assert (state.state, state.done, state.total, state.detail) == ("running", 1, 3, "one�[2J")
    assert state.notes == ("a line",)
    # One job of a kind at a time; another kind may run in parallel.
    with pytest.raises(JobRunningError, match='"A test" is still running; wait until it ends') as refused:
        jobs.start("test", "Again", work)
    assert refused.value.job is job
    assert finish(start(jobs, lambda job: None, "other")).state == "done"
    gate.set()
    ended = finish(job)
    assert (ended.state, ended.result) == ("done", {"answer": [1, 2]})
    assert ended.version > state.version
    last = start(jobs, lambda job: None)
    finish(last)
    numbers = [one.id for one in jobs.all()]
    assert numbers == sorted(numbers, reverse=True)
    assert (len(numbers), numbers[0], numbers[-1]) == (3, last.id, job.id)


def test_failed_job_has_a_state_and_bugs_do_not_end_the_server() -> None:
    def refuse(job: Job) -> None:
        raise InvalidArgumentError("limit must be at least 1, got 0")

    jobs = Jobs()
    refused = finish(start(jobs, refuse))
    assert (refused.state, refused.error) == ("failed", "limit must be at least 1, got 0")
    broken = finish(start(jobs, lambda job: 1 // 0))
    assert broken.state == "failed"
    assert broken.error.startswith("internal error: ZeroDivisionError")


def test_job_stops_at_its_next_report() -> None:
    def work(job: Job) -> None:
        while True:
            job.report(0, 0)
            time.sleep(0.01)

    jobs = Jobs()
    job = start(jobs, work)
    job.stop()
    assert finish(job).state == "stopped"
    other = start(jobs, work)
    jobs.stop()
    assert finish(other).state == "stopped"


def test_old_jobs_are_dropped() -> None:
    jobs = Jobs()
    started = [start(jobs, lambda job: None, f"test {number}") for number in range(60)]
    for job in started:
        finish(job)
    finish(start(jobs, lambda job: None))
    assert len(jobs.all()) <= 52
    assert jobs.get(started[0].id) is None
    assert jobs.get(started[-1].id) is not None


def test_rate_counts_only_steps_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that resumes begins with the steps of earlier ones, which cost it nothing."""
    now = 100.0
    monkeypatch.setattr("vidkin.web.jobs.time", SimpleNamespace(monotonic=lambda: now))
    job = Job(1, "duplicates", "Find duplicates")
    job.report(0, 0, "looking")
    job.report(500, 1000, "comparing")
    assert (job.state().rate, job.state().seconds_left) == (0.0, None)
    for done in (510, 520, 530):
        now += 1.0
        job.report(done, 1000, "comparing")
    state = job.state()
    assert (state.rate, state.seconds_left, state.seconds) == (10.0, 47.0, 3.0)
    job.report(0, 10, "grouping")  # another kind of step
    assert (job.state().rate, job.state().seconds_left) == (0.0, None)
