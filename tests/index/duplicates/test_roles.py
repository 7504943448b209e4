"""Which files of real groups stay, proven by decoding: content that exists only once is never planned for removal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont

from tests.support.sounds import RATE as SOUND_RATE
from tests.support.sounds import Samples, tune
from tests.support.videos import Image, encode, pan, photograph
from vidkin.files import Proof, Prover
from vidkin.index import DuplicateGroup, DuplicateMember, Index, SerialExecutor, plan_removal

RATE, COUNT = 10, 40
GOOD, BAD = {"crf": "17"}, {"crf": "32"}


def frames(name: str) -> list[Image]:
    return list(pan(name, COUNT))


def take(seed: int) -> list[Image]:
    """Moving hands in front of the same wall; each seed gives different movements."""
    wall = photograph("brick")[:128, :192]
    generator = np.random.default_rng(seed)
    phases, turns = generator.uniform(0, 6, 4), generator.uniform(1, 4, 4)
    moments = []
    for moment in range(COUNT):
        image = wall.copy()
        across, down = (np.sin(turns * moment / RATE + phases) * 40 + 60).astype(int).reshape(2, 2)
        for x, y in zip(across, down, strict=True):
            image[y : y + 26, x : x + 20] = (220, 180, 150)
        moments.append(image)
    return moments


def add_caption(image: Image) -> Image:
    picture = PILImage.fromarray(image)
    style = {"fill": (255, 255, 255), "stroke_width": 2, "stroke_fill": (0, 0, 0)}
    ImageDraw.Draw(picture).text((20, 98), "and then he said", font=ImageFont.load_default(18), **style)
    return np.asarray(picture)


def add_tracks(
    source: Path,
    tracks: Sequence[tuple[Samples, str]] = (),
    *,
    date: str = "",
) -> Path:
    """Remux a video without re-encoding, adding sound tracks in the given languages and a date."""
    target = source.with_suffix(".mkv")
    with av.open(str(source)) as given, av.open(str(target), "w") as made:
        if date:
            made.metadata["creation_time"] = date
        video = made.add_stream_from_template(given.streams.video[0])
        streams = [made.add_stream("aac", rate=SOUND_RATE, layout="mono") for _ in tracks]
        for stream, (_, language) in zip(streams, tracks, strict=True):
            stream.metadata["language"] = language
            stream.bit_rate = 12_000  # negligible compared to the frames
        for packet in given.demux(video=0):
            if packet.dts is not None:
                packet.stream = video
                made.mux(packet)
        for stream, (samples, _) in zip(streams, tracks, strict=True):
            for first in range(0, len(samples), 1024):
                part = av.AudioFrame.from_ndarray(samples[first : first + 1024][None], format="fltp", layout="mono")
                part.sample_rate, part.pts = SOUND_RATE, first
                made.mux(stream.encode(part))
            made.mux(stream.encode(None))
    source.unlink()
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roles")
    english, german = tune(4, seed=1), tune(4, seed=2)
    rocket = frames("rocket")
    encode(folder / "rocket, best frames.mp4", rocket, options=GOOD)
    add_tracks(encode(folder / "rocket, sound.mp4", rocket, options=BAD), [(english, "eng")])
    encode(folder / "rocket, neither.mp4", rocket, options=BAD)
    coffee = frames("coffee")
    add_tracks(encode(folder / "coffee, best frames.mp4", coffee, options=GOOD), [(english, "eng")])
    both = [(english, "eng"), (german, "deu")]
    add_tracks(encode(folder / "coffee, both languages.mp4", coffee, options=BAD), both)
    add_tracks(encode(folder / "coffee, one language.mp4", coffee, options=BAD), [(german, "deu")])
    astronaut = frames("astronaut")
    encode(folder / "astronaut.mp4", astronaut, options=GOOD)
    dated = encode(folder / "astronaut, dated.mp4", astronaut, options=BAD)
    add_tracks(dated, date="2020-01-02T03:04:05.000000Z")
    chelsea = frames("chelsea")
    encode(folder / "chelsea.mp4", chelsea, options=GOOD)
    encode(folder / "chelsea, captioned.mp4", map(add_caption, chelsea), options=BAD)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    with Index.open(folder / "i", create=True) as opened:
        opened.add(folder, executor=SerialExecutor(opened.worker_spec))
        yield opened


def member(groups: Sequence[DuplicateGroup], stem: str) -> DuplicateMember:
    return next(each for group in groups for each in group.members if Path(each.path).stem == stem)


def map_removals(groups: Sequence[DuplicateGroup]) -> dict[str, str]:
    """Map the stem of each file to remove to the stem of the file that stays for it."""
    return {
        Path(file.path).stem: Path(group.keep.path).stem
        for group in plan_removal(groups).groups
        for file in group.remove
    }


@pytest.mark.thorough
def test_nothing_is_planned_without_a_proof_whatever_the_score(index: Index) -> None:
    groups = [group for group in index.duplicates() if not any(each.proof for each in group.members)]
    assert plan_removal(groups).groups == ()


def test_only_files_contained_in_another_are_planned(index: Index) -> None:
    """Files with the only sound, the second language, the only date or the caption stay, as do the best frames."""
    groups = index.duplicates(prove=True)
    assert len(groups) == 4
    assert map_removals(groups) == {
        "rocket, neither": "rocket, sound",
        "coffee, one language": "coffee, both languages",
    }
    findings = {
        Path(each.path).stem: {finding.kind for finding in each.findings}
        for group in groups
        for each in group.members
        if each.findings
    }
    assert findings == {
        "rocket, best frames": {"quality"},
        "coffee, best frames": {"quality"},
        "astronaut": {"quality"},
        "chelsea, captioned": {"picture"},
    }
    for group in groups:
        for each in group.members:
            assert each.best or each.is_proven == (Path(each.path).stem in map_removals(groups)) == (
                each.kept_by is not None
            )
            assert each.best or each.is_proven or each.doubt


def test_proven_pairs_are_not_proven_again(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = index.duplicates(prove=True)

    def refuse(prover: Prover, kept: str, removed: str, *rest: object, **options: object) -> None:
        raise AssertionError(f"{removed} is proven again")

    monkeypatch.setattr(Prover, "prove", refuse)
    assert index.duplicates(prove=True) == groups
    # Stored proofs count even if no new ones are requested.
    assert map_removals(index.duplicates()) == map_removals(groups)


@pytest.mark.large
def test_changed_file_is_proven_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is indexed again, it is not planned."""
    film = frames("coffee")
    encode(tmp_path / "film.mp4", film, options=GOOD)
    copy = encode(tmp_path / "copy.mp4", film, options=BAD)
    proven: list[tuple[str, str]] = []
    prove = Prover.prove

    def note(prover: Prover, kept: str, removed: str, *rest: Any, **options: Any) -> Proof:
        proven.append((Path(kept).stem, Path(removed).stem))
        return prove(prover, kept, removed, *rest, **options)

    monkeypatch.setattr(Prover, "prove", note)
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
        groups = index.duplicates(prove=True)
        assert map_removals(groups) == {"copy": "film"}
        assert proven == [("film", "copy")]
        encode(copy, map(add_caption, film), options=BAD)
        (group,) = groups
        assert plan_removal([group], records=index.videos()).groups == ()
        assert plan_removal([group]).groups == ()
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
        proven.clear()
        assert map_removals(index.duplicates(prove=True)) == {}
        assert ("film", "copy") in proven


@pytest.mark.thorough
def test_user_may_accept_lost_metadata_and_sound_but_not_lost_footage(index: Index) -> None:
    words = {"prove": True, "prefer": "bit-rate"}
    refused, accepted = index.duplicates(**words), index.duplicates(**words, accept=["metadata", "sound"])
    assert {finding.kind for finding in member(refused, "astronaut, dated").findings} == {"metadata"}
    assert not {name for name in map_removals(refused) if "astronaut" in name}
    assert map_removals(accepted) == {
        "astronaut, dated": "astronaut",
        "rocket, neither": "rocket, best frames",
        "rocket, sound": "rocket, best frames",
        "coffee, one language": "coffee, best frames",
        "coffee, both languages": "coffee, best frames",
    }
    assert member(accepted, "astronaut, dated").findings == ()
    texts = [text for group in plan_removal(accepted).groups for file in group.remove for text in file.accepted]
    assert any("2020-01-02" in text for text in texts), texts


def test_pair_confirmed_as_copies_may_differ_in_the_frames(index: Index, folder: Path) -> None:
    pair = folder / "chelsea.mp4", folder / "chelsea, captioned.mp4"
    index.confirm(*pair)
    try:
        assert map_removals(index.duplicates(prove=True))["chelsea, captioned"] == "chelsea"
    finally:
        index.forget_decision(*pair)
    assert "chelsea, captioned" not in map_removals(index.duplicates(prove=True))


@pytest.mark.thorough
def test_preferred_file_stays_even_if_another_contains_more(index: Index, folder: Path) -> None:
    chosen = folder / "rocket, neither.mp4"
    index.prefer(chosen)
    try:
        groups = index.duplicates(prove=True)
    finally:
        (index.path / "decisions.json").unlink()
    group = next(group for group in groups if group.best.path == str(chosen))
    assert group.reason == "your choice"
    assert not {name for name in map_removals(groups) if "rocket" in name}


@pytest.mark.thorough
def test_new_files_are_removed_in_favor_of_the_library_but_never_the_reverse(tmp_path: Path, folder: Path) -> None:
    for name, source in (
        ("library/film.mp4", "rocket, neither.mp4"),
        ("new/better.mp4", "rocket, best frames.mp4"),
        ("new/same.mp4", "rocket, neither.mp4"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / source, tmp_path / name)
    with Index.open(tmp_path / "i", create=True) as index:
        index.add(tmp_path, executor=SerialExecutor(index.worker_spec))
        (group,) = index.duplicates(prove=True, incoming=tmp_path / "new")
    assert (Path(group.best.path).stem, group.reason) == ("film", "in the library")
    assert map_removals([group]) == {"same": "film"}
    better = member([group], "better")
    assert {finding.kind for finding in better.findings} == {"quality"}
    assert not better.is_spare


@pytest.fixture(scope="module")
def dangers(tmp_path_factory: pytest.TempPathFactory) -> list[DuplicateGroup]:
    """Groups of similar takes, of copies that show less of the frame, and of lossless edits."""
    folder = tmp_path_factory.mktemp("dangers")
    for seed in (1, 2):
        encode(folder / f"take {seed}.mp4", take(seed), options=GOOD)
    sources = {name: frames(name) for name in ("coffee", "chelsea", "rocket", "astronaut")}
    for name, images in sources.items():
        encode(folder / f"{name}.mp4", images, options=GOOD)
    letterboxed = [np.pad(image, ((24, 24), (0, 0), (0, 0))) for image in sources["coffee"]]
    encode(folder / "coffee, letterboxed.mp4", letterboxed, options=BAD)
    encode(folder / "chelsea, mirrored.mp4", [image[:, ::-1] for image in sources["chelsea"]], options=BAD)
    gray = [np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8) for image in sources["rocket"]]
    encode(folder / "rocket, gray.mp4", gray, options=BAD)
    other = frames("grass")
    encode(
        folder / "astronaut, other middle.mp4", [*sources["astronaut"][:12], *other[12:28], *sources["astronaut"][28:]]
    )
    with Index.open(folder / "i", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
        return list(index.duplicates(prove=True, parts=True, threshold=0.3))


@pytest.mark.large
def test_only_lossless_edits_are_planned(dangers: list[DuplicateGroup]) -> None:
    found = map_removals(dangers)
    assert found == {
        "coffee, letterboxed": "coffee",
        "chelsea, mirrored": "chelsea",
        "rocket, gray": "rocket",
    }
