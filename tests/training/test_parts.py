"""The small parts of the loop: rates, the collapse watch, the log, checkpoints, random states, augmentation, Ctrl-C."""

from __future__ import annotations

import json
import random
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.training import ScheduleRecipe
from vidkin.training.augment import augmented
from vidkin.training.checkpoint import Checkpoint, load_optimiser, optimiser_tensors
from vidkin.training.interrupt import deferred_interrupt
from vidkin.training.randomness import random_state, restore_random_state, seeded
from vidkin.training.run_log import RunLog
from vidkin.training.schedules import rate_factor
from vidkin.training.watch import CollapseWatch


class TestRates:
    def test_constant_with_warm_up(self) -> None:
        schedule = ScheduleRecipe(warm_up=4)
        assert [rate_factor(schedule, step) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]

    def test_cosine_goes_from_one_to_the_final_factor(self) -> None:
        schedule = ScheduleRecipe(decay="cosine", steps=11, final_factor=0.1)
        assert rate_factor(schedule, 0) == 1.0
        assert rate_factor(schedule, 5) == pytest.approx(0.55)
        assert rate_factor(schedule, 10) == pytest.approx(0.1)

    def test_steps(self) -> None:
        schedule = ScheduleRecipe(decay="step", step_every=2, step_factor=0.5)
        assert [rate_factor(schedule, step) for step in range(5)] == [1.0, 1.0, 0.5, 0.5, 0.25]


class TestCollapseWatch:
    def test_tells_once_and_knows_when_it_is_over(self) -> None:
        watch = CollapseWatch(0.2)
        fired = [watch.add(1.0, step) for step in range(1, 11)]
        assert watch.start == pytest.approx(1.0)
        assert watch.threshold == pytest.approx(0.2)
        fired += [watch.add(0.0, step) for step in range(11, 41)]
        # .9 ** 16 is the first power of .9 below .2.
        assert [step for step, now in enumerate(fired, 1) if now] == [26]
        assert (watch.collapsed_at, watch.is_collapsed) == (26, True)
        for step in range(41, 60):
            assert not watch.add(1.0, step)
        assert (watch.collapsed_at, watch.is_collapsed) == (26, False)

    def test_points_that_never_were_apart_are_a_collapse_too(self) -> None:
        watch = CollapseWatch(0.0)
        fired = [watch.add(0.01, step) for step in range(1, 11)]
        assert fired == [False] * 9 + [True]


class TestLog:
    def test_lines_after_the_checkpoint_and_torn_ones_are_dropped(self, tmp_path: Path) -> None:
        log = RunLog(tmp_path)
        for step in (1, 2, 3):
            log.write(step, "step", {"loss": 1.0 / step, "odd": float("nan")})
        log.close()
        with (tmp_path / "run.jsonl").open("a") as file:
            file.write('{"step": 4, "ki')
        log = RunLog(tmp_path, resume_after=2)
        log.write(3, "step", {"loss": 7.0})
        log.close()
        found = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
        assert [(line["step"], line["loss"]) for line in found] == [(1, 1.0), (2, 0.5), (3, 7.0)]
        assert found[0]["odd"] is None

    def test_without_resuming_it_starts_anew(self, tmp_path: Path) -> None:
        (tmp_path / "run.jsonl").write_text('{"step": 1}\n')
        RunLog(tmp_path).close()
        assert (tmp_path / "run.jsonl").read_text() == ""

    def test_a_folder_that_is_none_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"run.jsonl cannot be written"):
            RunLog(tmp_path / "nowhere")


class TestCheckpoint:
    def test_comes_back_bit_by_bit_and_leaves_no_part_behind(self, tmp_path: Path) -> None:
        tensors = {
            "a": torch.rand(3, 2),
            "b": torch.tensor([1, 2]),
            "c": torch.tensor(0.1, dtype=torch.float64),
        }
        Checkpoint(7, tensors, {"x": 0.1 + 0.2, "y": None}).write(tmp_path / "file")
        found = Checkpoint.read(tmp_path / "file")
        assert (found.step, found.noted) == (7, {"x": 0.1 + 0.2, "y": None})
        assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    @pytest.mark.parametrize("kind", ["adamw", "sgd"])
    def test_an_optimiser_goes_on_exactly(self, kind: str) -> None:
        def made() -> tuple[torch.nn.Linear, torch.optim.Optimizer]:
            torch.manual_seed(0)
            layer = torch.nn.Linear(3, 2)
            if kind == "sgd":
                return layer, torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
            return layer, torch.optim.AdamW(layer.parameters(), lr=0.1)

        def step(layer: torch.nn.Linear, optimiser: torch.optim.Optimizer) -> None:
            optimiser.zero_grad()
            layer(torch.ones(1, 3)).square().sum().backward()
            optimiser.step()

        first, first_optimiser = made()
        step(first, first_optimiser)
        second, second_optimiser = made()
        second.load_state_dict(first.state_dict())
        load_optimiser(second_optimiser, optimiser_tensors(first_optimiser))
        for _ in range(3):
            step(first, first_optimiser)
            step(second, second_optimiser)
        assert torch.equal(first.weight, second.weight)

    def test_a_newer_format_is_refused(self, tmp_path: Path) -> None:
        from safetensors.torch import save_file

        save_file(
            {"a": torch.zeros(1)}, tmp_path / "file", metadata={"format": "99", "step": "1", "noted": "{}"}
        )
        with pytest.raises(InvalidArgumentError, match="was written by a newer vidkin"):
            Checkpoint.read(tmp_path / "file")

    def test_a_folder_that_is_none_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r"the checkpoint .* cannot be written"):
            Checkpoint(1, {"a": torch.zeros(1)}, {}).write(tmp_path / "nowhere" / "file")


class TestRandomness:
    @staticmethod
    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    def test_states_survive_json(self) -> None:
        tensors, noted = random_state()
        expected = self.drawn()
        restore_random_state(tensors, json.loads(json.dumps(noted)))
        assert self.drawn() == expected

    def test_inside_is_seeded_and_outside_goes_on(self) -> None:
        tensors, noted = random_state()
        expected = self.drawn()
        restore_random_state(tensors, noted)
        with seeded(3):
            first = self.drawn()
        assert self.drawn() == expected
        with seeded(3):
            assert self.drawn() == first


class TestAugmentation:
    def test_nothing_asked_for_changes_nothing(self) -> None:
        clips = torch.rand(2, 3, 3, 8, 8)
        assert torch.equal(augmented(clips, (), torch.Generator()), clips)

    def test_a_flip_is_the_same_for_all_frames_of_a_clip(self) -> None:
        frame = torch.arange(8.0).expand(3, 8, 8) / 8
        clips = frame.expand(64, 4, 3, 8, 8)
        found = augmented(clips, ("flip",), torch.Generator().manual_seed(0))
        kinds = [torch.equal(clip, clips[0]) for clip in found]
        assert all(torch.equal(c, clips[0]) or torch.equal(c, clips[0].flip(-1)) for c in found)
        assert 20 < sum(kinds) < 44

    @pytest.mark.parametrize("shape", [(4, 3, 12, 12), (4, 2, 3, 12, 12)])
    def test_crops_and_colours_keep_shape_and_range_and_follow_the_generator(
        self, shape: tuple[int, ...]
    ) -> None:
        clips = torch.rand(shape, generator=torch.Generator().manual_seed(1))
        found = [
            augmented(clips, ("crop", "colour"), torch.Generator().manual_seed(seed)) for seed in (2, 2, 3)
        ]
        assert found[0].shape == clips.shape
        assert 0 <= float(found[0].min()) <= float(found[0].max()) <= 1
        assert torch.equal(found[0], found[1])
        assert not torch.equal(found[0], found[2])

    def test_a_crop_of_a_plain_picture_is_the_picture(self) -> None:
        clips = torch.full((3, 3, 16, 16), 0.25)
        assert torch.allclose(augmented(clips, ("crop",), torch.Generator().manual_seed(0)), clips)


class TestInterrupt:
    def test_the_first_is_noted_and_the_second_interrupts(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        with deferred_interrupt() as interrupt:
            assert not interrupt
            signal.raise_signal(signal.SIGINT)
            assert interrupt
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before

    def test_outside_the_main_thread_it_stays_away(self) -> None:
        found: list[bool] = []

        def work() -> None:
            with deferred_interrupt() as interrupt:
                found.append(bool(interrupt))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [False]
