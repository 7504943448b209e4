"""Import of checkpoints with the parameter names and shapes of the published ones."""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.support.peak import measure_peak
from vidkin.errors import InvalidArgumentError
from vidkin.features import Whitening
from vidkin.models import Comparator, ComparatorConfig, load_comparator, read_comparator_info
from vidkin.models.comparator_import import import_comparator

State = dict[str, torch.Tensor]
NETWORK = {"conv1": (32, 1, 3, 3), "conv2": (64, 32, 3, 3), "conv3": (128, 64, 3, 3), "fconv": (1, 128, 1, 1)}


def make_checkpoint(prefix: str, **others: tuple[int, ...]) -> State:
    """A checkpoint with random weights: a map network under this prefix, and other parameters."""
    generator = torch.Generator().manual_seed(len(prefix))
    sizes: dict[str, tuple[int, ...]] = {name.replace("__", "."): size for name, size in others.items()}
    for layer, size in NETWORK.items():
        sizes |= {f"{prefix}{layer}.weight": size, f"{prefix}{layer}.bias": size[:1]}
    # Weights small enough for scores between -1 and 1.
    return {name: torch.randn(size, generator=generator) * 0.05 for name, size in sizes.items()}


ATTENTION = {
    "attention__transform__weight": (512, 512), "attention__transform__bias": (512,),
    "attention__context_vector__weight": (1, 512),
}  # fmt: skip
DIRECTION = {"attention__context_vector__weight": (1, 3840)}
LAYOUTS = {
    "visil": make_checkpoint("video_comperator.", **DIRECTION),
    "visil-symmetric": make_checkpoint("video_comperator.", attention__context_vector__weight=(1, 512)),
    "dns": make_checkpoint("visil_head.", **ATTENTION),
    "s2vs": make_checkpoint("visil_head.", **ATTENTION),
    "hap-vr": make_checkpoint("comparator_module.", **ATTENTION),
}


@pytest.fixture
def whitening(tmp_path: Path) -> Path:
    path = tmp_path / "pca.npz"
    np.savez(path, mean=np.zeros(6), d=np.array([1.0, 4.0, 2.0]), V=np.eye(6)[:, :3])
    return path


def save_checkpoint(tmp_path: Path, content: Any) -> Path:
    torch.save(content, tmp_path / "model.pth")
    return tmp_path / "model.pth"


def published_score(state: State, prefix: str, query: torch.Tensor, target: torch.Tensor, layout: str) -> float:
    """The score according to the formula in the published code."""
    weighed = []
    for values in (query, target):
        context = state["attention.context_vector.weight"]
        if "attention.transform.weight" in state:
            inner = values @ state["attention.transform.weight"].T + state["attention.transform.bias"]
            weights = (torch.tanh(inner) @ context.T).sigmoid()
        else:
            weights = values @ context.T / context.norm() / 2 + 0.5
        weighed.append(values * weights)
    product = torch.einsum("iok,jpk->iojp", *weighed)
    best = product.amax(3).mean(1)
    if layout == "visil-symmetric":
        best = (best + product.amax(1).mean(2)) / 2
    signal = best[None, None]
    mode = "replicate" if layout.startswith("visil") else "constant"
    for layer in ("conv1", "conv2", "conv3"):
        weight, bias = state[f"{prefix}{layer}.weight"], state[f"{prefix}{layer}.bias"]
        signal = functional.relu(functional.conv2d(functional.pad(signal, (1, 1, 1, 1), mode), weight, bias))
        if layer != "conv3":
            signal = functional.max_pool2d(signal, 2)
    learned = functional.conv2d(signal, state[f"{prefix}fconv.weight"], state[f"{prefix}fconv.bias"])
    learned = functional.hardtanh(learned)[0, 0]
    score = learned.amax(1).mean()
    if layout == "visil-symmetric":
        score = (score + learned.amax(0).mean()) / 2
    return float(score)


@pytest.mark.parametrize("lengths", [(8, 24), (31, 7), (5, 30)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_equal_the_published_code(
    layout: str, lengths: tuple[int, int], tmp_path: Path, whitening: Path
) -> None:
    state = LAYOUTS[layout]
    content = state if layout.startswith("visil") else {"model": state}
    config = import_comparator(
        save_checkpoint(tmp_path, content), tmp_path / "model", layout=layout, whitening=whitening
    )
    comparator = load_comparator(tmp_path / "model")
    assert comparator.config == config
    assert config.extractor == "timm:resnet50.tv_in1k?fit=crop"
    assert (config.spatial_share, config.temporal_share) == ((0.1, 0.03) if layout == "hap-vr" else (None, None))
    generator = torch.Generator().manual_seed(1)
    query, target = (
        functional.normalize(torch.randn(frames, 9, config.dimension, generator=generator), dim=-1)
        for frames in lengths
    )
    prefix = next(name for name in state if name.endswith("conv1.weight")).removesuffix("conv1.weight")
    expected = published_score(state, prefix, query, target, layout)
    assert score(comparator, query, target) == pytest.approx(expected, abs=1e-5)
    assert score(comparator, target, query) == pytest.approx(
        published_score(state, prefix, target, query, layout), abs=1e-5
    )


def score(comparator: Comparator, query: torch.Tensor, target: torch.Tensor) -> float:
    arrays = comparator.on_arrays()
    frame_map = arrays.frame_map(arrays.weigh(query.numpy()), arrays.weigh(target.numpy()))
    return arrays.video_score(arrays.learned_map(frame_map))


def test_the_binary_student_of_dns_is_imported(tmp_path: Path, whitening: Path) -> None:
    state = make_checkpoint("visil_head.", binarization__W=(512, 512))
    path = save_checkpoint(tmp_path, {"model": state})
    config = import_comparator(path, tmp_path / "model", layout="dns", whitening=whitening)
    assert (config.weighting, config.dimension) == ("signs", 512)
    values = torch.randn(2, 9, 512)
    signs = torch.sign(functional.normalize(values, dim=-1) @ state["binarization.W"])
    found = load_comparator(tmp_path / "model").weigh(values)
    torch.testing.assert_close(found @ found.mT, signs @ signs.mT / 512)


def test_settings_come_from_the_stored_training_arguments(tmp_path: Path, whitening: Path) -> None:
    state = {f"module.{name}": value for name, value in LAYOUTS["hap-vr"].items()}
    arguments = argparse.Namespace(f_topk_rate=0.35, v_topk_rate=0.2, symmetric=True, dataset_path="videos")
    path = save_checkpoint(tmp_path, {"args": arguments, "model": state, "optimizer": {"state": {}}, "global_step": 7})
    config = import_comparator(path, tmp_path / "model", layout="hap-vr", whitening=whitening)
    assert (config.spatial_share, config.temporal_share, config.symmetric) == (0.35, 0.2, True)


def test_frame_network_of_a_visil_model_is_ignored(tmp_path: Path, whitening: Path) -> None:
    state = {f"visil_head.{name}": value for name, value in LAYOUTS["visil"].items()}
    path = save_checkpoint(tmp_path, {**state, "cnn.cnn.conv1.weight": torch.zeros(64, 3, 7, 7)})
    config = import_comparator(path, tmp_path / "model", layout="visil", whitening=whitening)
    assert (config.weighting, config.dimension, config.padding) == ("direction", 3840, "replicate")


def test_a_published_whitening_is_converted(tmp_path: Path) -> None:
    small = {"attention__context_vector__weight": (1, 2)}
    white = tmp_path / "white.pth"
    torch.save({"mean": torch.tensor([1.0, 0.0, 0.0]), "d": torch.tensor([1.0, 4.0, 2.0]), "V": torch.eye(3)}, white)
    path = save_checkpoint(tmp_path, make_checkpoint("video_comperator.", **small))
    import_comparator(path, tmp_path / "model", layout="visil", whitening=white)
    file = read_comparator_info(tmp_path / "model").whitening
    assert file is not None
    # The two largest eigenvalues give x1 / 2 and x2 / sqrt 2, normalized to length 1.
    whitened = Whitening.load(file).apply(np.array([[5.0, 6.0, 4 * 2**0.5]]))
    np.testing.assert_allclose(whitened, [[0.6, 0.8]], atol=1e-5)


def test_scores_of_unrelated_videos_are_measured_with_an_extractor(tmp_path: Path) -> None:
    state = make_checkpoint("visil_head.", attention__transform__weight=(128, 128), attention__transform__bias=(128,),
                 attention__context_vector__weight=(1, 128))  # fmt: skip
    config = import_comparator(
        save_checkpoint(tmp_path, {"model": state}), tmp_path / "model", layout="s2vs", extractor="squares"
    )
    assert config.unrelated is not None
    assert read_comparator_info(tmp_path / "model").config == config


@pytest.mark.parametrize(
    ("content", "layout", "message"),
    [
        (LAYOUTS["s2vs"], "s2us", "layout must be one of visil, visil-symmetric, dns, s2vs, hap-vr, got 's2us'"),
        (LAYOUTS["hap-vr"], "s2vs", r"with layout s2vs must contain weights named visil_head\.\*, got attention"),
        ({"netvlad.centroids": torch.zeros(64, 512)}, "dns", "must contain weights named visil_head.*got netvlad"),
        ({**LAYOUTS["dns"], "mlp.layer": torch.zeros(2)}, "dns", "unexpected 1 .mlp.layer"),
        ([torch.zeros(2)], "s2vs", "must contain a state dictionary, got list"),
        ({"model": Path("x")}, "s2vs", "contains objects other than tensors"),
        ({**LAYOUTS["s2vs"], "visil_head.fconv.bias": torch.tensor([float("nan")])}, "s2vs", "non-finite values"),
    ],
)  # fmt: skip
def test_checkpoints_of_another_layout_are_rejected_without_writing(
    content: Any, layout: str, message: str, tmp_path: Path, whitening: Path
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        import_comparator(save_checkpoint(tmp_path, content), tmp_path / "model", layout=layout, whitening=whitening)
    assert not (tmp_path / "model").exists()


def test_files_without_a_checkpoint_are_rejected(tmp_path: Path, whitening: Path) -> None:
    garbage = tmp_path / "garbage.pth"
    garbage.write_bytes(b"not a file of torch")
    with pytest.raises(InvalidArgumentError, match=r"garbage\.pth"):
        import_comparator(garbage, tmp_path / "model", layout="s2vs", whitening=whitening)
    path = save_checkpoint(tmp_path, LAYOUTS["s2vs"])
    with pytest.raises(InvalidArgumentError, match="specify the whitening used in its training"):
        import_comparator(path, tmp_path / "model", layout="s2vs")
    with pytest.raises(InvalidArgumentError, match="must contain mean, d and V"):
        import_comparator(path, tmp_path / "model", layout="s2vs", whitening=path)


def test_a_configuration_is_restored_from_its_file() -> None:
    config = ComparatorConfig(spatial_share=0.1, unrelated=(0.0, 0.5))
    assert ComparatorConfig.from_mapping(config.to_mapping()) == config


# Files that would expand to far more memory than their size


def repack(source: Path, path: Path, compression: int, extra: bytes = b"") -> Path:
    """A copy of a zip file with an additional entry."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", compression) as new:
        for part in old.infolist():
            new.writestr(part.filename, old.read(part))
        if extra:
            new.writestr("archive/data/more", extra)
    return path


def bombs(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    """Files with the reason for which each one is rejected."""
    plain = save_checkpoint(tmp_path, {"a": torch.zeros(30_000_000)})
    compressed = repack(plain, tmp_path / "compressed.pt", zipfile.ZIP_DEFLATED)
    tiny = tmp_path / "tiny.pt"
    torch.save({"a": torch.zeros(1).expand(100_000, 100_000)}, tiny)
    shared = tmp_path / "shared.pt"
    block = torch.zeros(1_000_000)
    torch.save({f"a{number}": block[: 1_000_000 - number] for number in range(1000)}, shared)
    called = tmp_path / "called.pt"
    # A pickle that calls bytearray(10**9), which weights_only=True allows.
    work = b"\x80\x02cbuiltins\nbytearray\nJ\x00\xca\x9a\x3b\x85R."
    called.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}." + work)
    steps = tmp_path / "steps.pt"
    steps.write_bytes(b"\x80\x02(" + b"}" * 10_000_000 + b"l.")
    long = tmp_path / "long.pt"
    long.write_bytes(b"\x80\x02\x8d" + (2**40).to_bytes(8, "little") + b"abc")
    disguised = tmp_path / "disguised.pt"
    with zipfile.ZipFile(inner := io.BytesIO(), "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
    disguised.write_bytes(called.read_bytes() + inner.getvalue())
    return {
        "compressed": (compressed, "must be stored without compression"),
        "one number as many": (
            tiny,
            "must take at most 4 times the file size of [0-9,]+ bytes, got 40,000,000,000",
        ),
        "one block many times": (shared, "must take at most 4 times"),
        "a call": (called, "contains objects other than tensors"),
        "a call before an archive": (disguised, "contains objects other than tensors"),
        "many steps": (steps, "must have at most 300,000 pickle opcodes"),
        "a length that is not there": (long, "is not a PyTorch file"),
    }


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of one process alone is read from /proc")
def test_a_checkpoint_that_would_expand_in_memory_is_rejected(tmp_path: Path) -> None:
    work = "importing._read_torch(sys.argv[1])"
    for name, (path, message) in bombs(tmp_path).items():
        with pytest.raises(InvalidArgumentError, match=message):
            import_comparator(path, tmp_path / "model", layout="s2vs", extractor="classical")
        peak = measure_peak("from vidkin.models import comparator_import as importing", work, path)
        assert peak.said.startswith("InvalidArgumentError"), (name, peak)
        assert peak.memory < 100e6 + 4 * path.stat().st_size, (name, peak)
        assert peak.seconds < 15, (name, peak)
    assert not (tmp_path / "model").exists()


def test_files_of_older_pytorch_can_be_read(tmp_path: Path, whitening: Path) -> None:
    path = tmp_path / "old.pth"
    torch.save({"model": LAYOUTS["s2vs"]}, path, _use_new_zipfile_serialization=False)
    config = import_comparator(path, tmp_path / "model", layout="s2vs", whitening=whitening)
    assert config.weighting == "attention"


def test_parts_that_share_their_bytes_are_rejected(tmp_path: Path) -> None:
    plain = save_checkpoint(tmp_path, {"a": torch.zeros(1000)})
    content = bytearray(plain.read_bytes())
    at = content.index(b"PK\x01\x02")
    entry = content[at + 24 : at + 28]
    content[at + 20 : at + 28] = (int.from_bytes(entry, "little") + len(content)).to_bytes(4, "little") * 2
    plain.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="must be at most as large as the file, got more"):
        import_comparator(plain, tmp_path / "model", layout="s2vs", extractor="classical")


def test_a_whitening_that_would_expand_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "pca.npz"
    np.savez_compressed(path, mean=np.zeros(100_000), d=np.zeros(2), V=np.zeros((2, 2)))
    model = save_checkpoint(tmp_path, LAYOUTS["s2vs"])
    with pytest.raises(InvalidArgumentError, match="the arrays must take at most 4 times the"):
        import_comparator(model, tmp_path / "model", layout="s2vs", whitening=path)
