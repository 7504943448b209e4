"""Proofs of file pairs: unusual files, all kinds of findings, and storage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.files.films import FILM_SECONDS, film, scale, segment, summarize, write
from tests.support.sounds import noise, tune, write_sounds
from tests.support.videos import broken_off, encode, pan
from vidkin.files import PROOF_REVISION, Proof, Prover, prove
from vidkin.similarity import Segment

FILM = film(FILM_SECONDS)
WHOLE = [segment(FILM_SECONDS)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("films") / "film.mp4", FILM, 20)


@pytest.fixture(scope="module")
def copy(source: Path) -> Path:
    return write(source.with_name("copy.mp4"), FILM, 32)


def test_copy_is_proven_and_the_proof_can_be_stored(source: Path, copy: Path) -> None:
    shares: list[float] = []
    proof = prove(source, copy, WHOLE, threads=1, on_progress=shares.append)
    assert proof.holds, summarize(proof.findings)
    assert (proof.kept, proof.removed, proof.revision) == (str(source), str(copy), PROOF_REVISION)
    assert proof.stretches[0].kept_start == pytest.approx(0.0, abs=0.1)
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < shares[-1] <= 1.0
    assert Proof.from_dict(json.loads(json.dumps(proof.to_dict()))) == proof


def test_identical_files_need_no_match(source: Path, tmp_path: Path) -> None:
    assert prove(source, shutil.copy(source, tmp_path / "same.mp4"), [], threads=1).holds


def test_findings_of_a_kind_can_be_accepted(source: Path, tmp_path: Path) -> None:
    twice = write(tmp_path / "twice.mp4", [frame for frame in FILM for _ in range(2)], rate=20)
    proof = prove(source, twice, WHOLE, threads=1)
    assert {finding.kind for finding in proof.findings} == {"frame-rate"}
    assert not proof.holds
    assert not proof.missing({"frame-rate"})


def test_smaller_copy_does_not_contain_more_pixels_of_the_scene(source: Path, tmp_path: Path) -> None:
    small = write(tmp_path / "small.mp4", scale(FILM, 192, 108))
    proof = prove(small, source, WHOLE, threads=1)
    assert [finding.kind for finding in proof.findings] == ["resolution"], summarize(proof.findings)
    assert "320x180 pixels, the kept file has" in proof.findings[0].text


def test_photograph_is_not_contained_in_a_smaller_one(tmp_path: Path) -> None:
    large = write(tmp_path / "large.mp4", FILM[:1], 20)
    small = write(tmp_path / "small.mp4", scale(FILM[:1], 192, 108), 20)
    proof = prove(small, large, [Segment(0.0, 0.0, 0.0, 0.0, 0.9)], threads=1)
    assert [finding.kind for finding in proof.findings] == ["resolution"], summarize(proof.findings)


@pytest.mark.parametrize("suffix", ["gif", "png"])
def test_animations_and_photographs_are_proven(tmp_path: Path, suffix: str) -> None:
    frames = [frame // 64 * 64 for frame in FILM[: 1 if suffix == "png" else 20]]
    codec, pixels = ("gif", "rgb8") if suffix == "gif" else ("png", "rgb24")
    kept = encode(tmp_path / f"kept.{suffix}", frames, codec=codec, pixel_format=pixels)
    removed = write(tmp_path / "removed.mp4", frames, 18)
    proof = prove(kept, removed, [segment(2.0 if suffix == "gif" else 0.0)], threads=1)
    assert not {finding.kind for finding in proof.findings} & {"picture", "ends", "unreadable"}, summarize(
        proof.findings
    )


def test_copy_with_sound_is_not_contained_in_a_silent_copy(source: Path, tmp_path: Path) -> None:
    kept, removed = tmp_path / "kept.mp4", tmp_path / "removed.mp4"
    write_sounds(removed, [tune(4.0, seed=1)], pictures="coffee")
    encode(kept, pan("coffee", 40), options={"crf": "18"})
    proof = prove(kept, removed, [segment(4.0)], threads=1)
    assert "sound" in {finding.kind for finding in proof.findings}
    assert "picture" not in {finding.kind for finding in proof.findings}, summarize(proof.findings)


def test_still_with_music_is_proven_but_never_without(tmp_path: Path) -> None:
    sounds = {
        "kept": tune(6.0, seed=1),
        "same": tune(6.0, seed=1),
        "other": tune(6.0, seed=2),
        "noise": noise(6.0, seed=3, level=0.1),
    }
    files = {name: tmp_path / f"{name}.mp4" for name in sounds}
    for name, sound in sounds.items():
        rate = 48_000 if name == "same" else 96_000
        write_sounds(files[name], [sound], pictures="coffee", is_still=True, bit_rate=rate)
    assert prove(files["kept"], files["same"], [segment(6.0)], threads=1).holds
    for other in ("other", "noise"):
        assert "sound" in {one.kind for one in prove(files["kept"], files[other], [segment(6.0)], threads=1).findings}
    still = [next(pan("coffee", 1))] * 40
    silent = write(tmp_path / "silent.mp4", still, 20), write(tmp_path / "silent copy.mp4", still, 30)
    proof = prove(*silent, [segment(4.0)], threads=1)
    assert "without motion or sound, it may be another recording" in summarize(proof.findings)
    for name, rate in (("kept", 96_000), ("same", 48_000)):
        write_sounds(files[name], [0 * sounds[name]], pictures="coffee", is_still=True, bit_rate=rate)
    proof = prove(files["kept"], files["same"], [segment(6.0)], threads=1)
    assert "without motion or sound" in summarize(proof.findings)


# Unreadable files


def test_damaged_kept_file_proves_nothing(source: Path, copy: Path, tmp_path: Path) -> None:
    content = bytearray(source.read_bytes())
    for position in range(len(content) // 3, len(content) // 2):
        content[position] = 0
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(bytes(content))
    assert not prove(damaged, copy, WHOLE, threads=1).holds


def test_truncated_kept_file_lacks_the_end(source: Path, copy: Path, tmp_path: Path) -> None:
    proof = prove(broken_off(source, tmp_path / "broken.mp4"), copy, WHOLE, threads=1)
    assert {finding.kind for finding in proof.findings} & {"ends", "picture", "unreadable"}


@pytest.mark.parametrize("which", ["missing", "empty", "text", "sound"])
def test_file_that_is_not_a_video_is_a_finding(source: Path, tmp_path: Path, which: str) -> None:
    path = tmp_path / "odd.mp4"
    if which == "empty":
        path.touch()
    elif which == "text":
        path.write_text("no video " * 100)
    elif which == "sound":
        write_sounds(path, [tune(2.0, seed=1)])
    for pair in ((source, path), (path, source)):
        proof = prove(*pair, WHOLE, threads=1)
        assert [finding.kind for finding in proof.findings] == ["unreadable"]
        assert str(path) in proof.findings[0].text


def test_file_that_changes_during_the_proof_is_a_finding(source: Path, copy: Path, tmp_path: Path) -> None:
    removed = Path(shutil.copy(copy, tmp_path / "changing.mp4"))

    def change(share: float) -> None:
        if share >= 0.7 and removed.read_bytes() == copy.read_bytes():
            removed.write_bytes(copy.read_bytes() + bytes(100))

    proof = prove(source, removed, WHOLE, threads=1, on_progress=change)
    assert f"unreadable: {removed} changed while it was being read" in summarize(proof.findings)


# Several pairs


def test_prover_decodes_each_file_once(source: Path, copy: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.mp4", FILM, 30)
    prover = Prover(threads=1)
    first = prover.prove(source, copy, WHOLE)
    assert first.holds
    reached: list[float] = []
    assert prover.prove(source, other, WHOLE, on_progress=reached.append).holds
    assert min(reached) >= 0.3  # progress of the cached kept file is skipped
    assert prover.prove(copy, source, WHOLE).findings  # the source has a higher quality
    prover.close()
    assert prover.prove(source, copy, WHOLE) == first
    prover.close()


@pytest.mark.large
def test_one_replaced_second_is_found_in_a_long_film(tmp_path: Path) -> None:
    frames = film(60.0, width=192, height=108)
    own = film(1.0, seed=9, width=192, height=108)
    kept = write(tmp_path / "kept.mp4", frames)
    removed = write(tmp_path / "removed.mp4", frames[:300] + own + frames[310:])
    proof = prove(kept, removed, [segment(60.0, 0.5)], threads=1)
    assert "0:30.0-0:31.0 shows something else" in summarize(proof.findings)
    assert np.isclose(sum(one.removed_end - one.removed_start for one in proof.stretches), 60.0, atol=0.2)
