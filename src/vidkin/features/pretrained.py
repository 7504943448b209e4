"""Open timm and torchvision networks with pretrained weights."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import itertools
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.registry import import_part
from vidkin.errors import InvalidArgumentError, MissingPartError, UnknownExtractorError, WeightsUnavailableError
from vidkin.features.networks import Triple, triple
from vidkin.features.whitening import read_safetensors

_STAGES = 4

POOLED = ("pooled",)

"""Value of ``stages`` that selects the input of the network's classifier."""

_LISTED = 5  # maximum number of names in a message


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network in eval mode, with its input properties.

    Attributes:
        module: The whole network, including its classifier if the weights have one.
        stages: Function from normalized images [B, 3, size, size] to feature maps [B, C_s, H_s, W_s], shallow to deep.
        size: Side of the input in pixels.
        mean: Mean of the input, in units of full scale (0 to 1).
        std: Standard deviation of the input, in the same units.
        metadata: Metadata of the weights file; empty for weights from a hub.
    """

    module: nn.Module
    stages: Callable[[torch.Tensor], list[torch.Tensor]]
    size: int
    mean: Triple
    std: Triple
    metadata: Mapping[str, str]

    def digest(self) -> str:
        """Return the SHA-256 of the names and values of all weights, independent of their source."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.module.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


def open_timm_network(
    model: str, *, options: Mapping[str, Any], stages: tuple[str, ...] | None, weights: PathLike | None
) -> Network:
    """Open a timm model.

    Args:
        model: Name such as ``resnet50`` or ``resnet50.tv_in1k``.
        options: Arguments of the model's constructor.
        stages: Indices of intermediate feature maps; default: the last four. ``pooled`` alone selects the input of the
            classifier, as a map with one cell; for a transformer, this is the class token after the last norm.
        weights: A safetensors file; None: weights from the local cache or the hub.
    """
    module, metadata = open_timm_module(model, options=options, weights=weights)
    label = f"timm:{model}"
    if stages == POOLED:
        return _timm_network(module.eval(), partial(_pooled, module), metadata)
    if not hasattr(module, "forward_intermediates"):
        raise InvalidArgumentError(f"{label} has no intermediate feature maps; choose another model")
    indices = _timm_indices(module, label, stages)
    module.eval()

    def maps(images: torch.Tensor) -> list[torch.Tensor]:
        return list(module.forward_intermediates(images, indices=indices, stop_early=True, intermediates_only=True))

    return _timm_network(module, maps, metadata)


def _pooled(module: Any, images: torch.Tensor) -> list[torch.Tensor]:
    return [module.forward_head(module.forward_features(images), pre_logits=True)[:, :, None, None]]


def _timm_network(module: Any, maps: Callable[[torch.Tensor], list[torch.Tensor]], metadata: dict[str, str]) -> Network:
    config = module.pretrained_cfg
    return Network(
        module,
        maps,
        int(config["input_size"][-1]),
        triple(config["mean"]),
        triple(config["std"]),
        metadata,
    )


def open_timm_module(
    model: str, *, options: Mapping[str, Any], weights: PathLike | None, fresh: bool = False
) -> tuple[Any, dict[str, str]]:
    """Open a timm model with its weights; other arguments as in :func:`open_timm_network`.

    Args:
        weights: A safetensors file; None: weights from the local cache or the hub.
        fresh: Use newly initialized weights instead.

    Returns:
        The module, and the metadata of its weights file.
    """
    timm = import_timm()
    label = f"timm:{model}"
    if not timm.is_model(model):
        similar = difflib.get_close_matches(model, timm.list_models(), n=_LISTED)
        raise UnknownExtractorError(
            f"timm has no model {model!r}; "
            + (f"similar names are {', '.join(similar)}" if similar else "timm.list_models() lists all models")
        )
    try:
        known = timm.get_pretrained_cfg(model, allow_unregistered=True)
    except RuntimeError as error:  # wrong weights tag, the part of the name after the dot
        raise UnknownExtractorError(f"timm has no weights called {model!r}: {error}") from error
    metadata: dict[str, str] = {}
    module: Any
    try:
        if fresh:
            module = timm.create_model(model, pretrained=False, **options)
        elif weights is None:
            module = _timm_with_hub_weights(timm, model, known, options)
        else:
            module = timm.create_model(model, pretrained=False, **options)
            # Names of the classifier's modules, which the weights may lack.
            names = module.pretrained_cfg.get("classifier") or ()
            names = (names,) if isinstance(names, str) else tuple(names)
            metadata = _load_weights(module, weights, label, names)
    except TypeError as error:
        if not options:
            raise
        raise InvalidArgumentError(f"{label} does not take the settings {dict(options)}: {error}") from error
    return module, metadata


def open_torchvision_network(model: str, *, stages: tuple[str, ...] | None, weights: PathLike | None) -> Network:
    """Open a torchvision image classifier.

    Args:
        model: Name such as ``resnet50``.
        stages: Names of nodes in its graph (``layer1,layer2``); default: the last map at each of the four coarsest
            resolutions; for residual networks, these are the outputs of their four stages.
        weights: A safetensors file; None: the default weights from the local cache or the hub.
    """
    module, metadata, default = open_torchvision_module(model, weights=weights)
    label = f"torchvision:{model}"
    module.eval()
    transforms = default.transforms()
    size = int(transforms.crop_size[0])
    extractor = torchvision_stages(module, label, stages, size)
    return Network(
        module,
        lambda images: list(extractor(images).values()),
        size,
        triple(transforms.mean),
        triple(transforms.std),
        metadata,
    )


def open_torchvision_module(
    model: str, *, weights: PathLike | None, fresh: bool = False
) -> tuple[nn.Module, dict[str, str], Any]:
    """Open a torchvision image classifier with its weights.

    Args:
        model: Name such as ``resnet50``.
        weights: Weights, as in :func:`open_torchvision_network`.
        fresh: Use newly initialized weights instead.

    Returns:
        The module, the metadata of its weights file, and torchvision's entry for its default weights.
    """
    torchvision = import_torchvision()
    label = f"torchvision:{model}"
    if model not in torchvision.models.list_models(module=torchvision.models):
        raise UnknownExtractorError(
            f"torchvision has no image classifier {model!r}; torchvision.models.list_models() lists all models"
        )
    default = torchvision.models.get_model_weights(model).DEFAULT
    metadata: dict[str, str] = {}
    # These constructors initialize slowly, and warn about it, although the weights are replaced afterward.
    extra = {"init_weights": False} if model in ("googlenet", "inception_v3") else {}
    module = torchvision.models.get_model(model, weights=None, **extra)
    if fresh:
        return module, metadata, default
    if weights is None:
        try:
            state = default.get_state_dict(progress=False, check_hash=True, weights_only=True)
        except (OSError, RuntimeError) as error:
            raise _unavailable(label, f"the cache of torch.hub and {default.url} ({error})") from error
        module.load_state_dict(state)
    else:
        metadata = _load_weights(module, weights, label, torchvision_classifier(module))
    return module, metadata, default


def torchvision_classifier(module: nn.Module) -> tuple[str, ...]:
    """Return the name of the classifier's module: the last linear layer of a complete network."""
    linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    return tuple(linear[-1:])


def _timm_with_hub_weights(timm: Any, model: str, config: Any, options: Mapping[str, Any]) -> nn.Module:
    """Load weights from the local cache without network access, otherwise from the hub."""
    import huggingface_hub
    from huggingface_hub.errors import RemoteEntryNotFoundError

    label = f"timm:{model}"
    if config is None or not (config.hf_hub_id or config.url or config.file):
        raise _unavailable(label, "timm, which has no pretrained weights for this model")
    overlay: dict[str, Any] | None = None
    try:
        if config.hf_hub_id:
            file = config.hf_hub_filename or "model.safetensors"
            cached = huggingface_hub.try_to_load_from_cache(config.hf_hub_id, file)
            if not isinstance(cached, str):
                # Fail immediately if the hub is unreachable; its client would retry for nearly a minute.
                if huggingface_hub.constants.HF_HUB_OFFLINE:
                    raise OSError("HF_HUB_OFFLINE is set")
                ping = urllib.request.Request(huggingface_hub.constants.ENDPOINT, method="HEAD")
                try:
                    urllib.request.urlopen(ping, timeout=10).close()
                except urllib.error.HTTPError as error:
                    error.close()  # any response, even an error, means that the hub is reachable
                try:
                    cached = huggingface_hub.hf_hub_download(config.hf_hub_id, file)
                except RemoteEntryNotFoundError:
                    cached = None  # an older repository with a different file name, which timm handles
            if cached is not None:
                overlay = {"file": cached, "custom_load": False}
        module: nn.Module = timm.create_model(model, pretrained=True, pretrained_cfg_overlay=overlay, **options)
    except OSError as error:
        place = config.hf_hub_id or config.url
        raise _unavailable(label, f"the local cache and the hub ({place}: {error})") from error
    return module


def _unavailable(label: str, tried: str) -> WeightsUnavailableError:
    cause = f"the weights of {label} are not available; tried {tried}"
    return WeightsUnavailableError(
        f"{cause}. Give a safetensors file (--weights FILE), or run once with a network connection, or use --extractor "
        "classical, which works offline",
        cause=cause,
    )


def _timm_indices(module: Any, label: str, stages: tuple[str, ...] | None) -> list[int]:
    count = len(module.feature_info)
    if stages is None:
        return list(range(max(0, count - _STAGES), count))
    try:
        indices = [int(stage) for stage in stages]
    except ValueError:
        indices = [count]
    if any(not -count <= index < count for index in indices):
        raise InvalidArgumentError(
            f"stages of {label} must be indices from {-count} to {count - 1}, got {','.join(stages)}"
        )
    return indices


@check_arguments
def torchvision_stages(module: nn.Module, label: str, stages: tuple[str, ...] | None, size: int) -> nn.Module:
    """Extract the part of a module that computes the stages, as a module that returns feature maps by name."""
    from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

    _, nodes = get_graph_node_names(module, suppress_diff_warning=True)
    if stages is None:
        probe = create_feature_extractor(module, nodes, suppress_diff_warning=True)
        with torch.no_grad():
            outputs = probe(torch.zeros(1, 3, size, size))
        last: dict[int, str] = {}
        for node in nodes[1:]:
            shape = tuple(outputs[node].shape) if isinstance(outputs[node], torch.Tensor) else ()
            if len(shape) == 4 and shape[0] == 1 and shape[2] == shape[3] >= 3:
                last[shape[2]] = node
        sides = sorted(last, reverse=True)[-_STAGES:]
        stages = tuple(last[side] for side in sides)
        # Attention weights are also square, but the maps of a pyramid halve in size from stage to stage.
        if len(sides) < 2 or any(fine < 1.7 * coarse for fine, coarse in itertools.pairwise(sides)):
            raise InvalidArgumentError(f"{label} has no pyramid of maps; choose another model, or one of timm:")
    # The name of a module refers to its last node.
    known = set(nodes) | {name for name, _ in module.named_modules() if name}
    unknown = [stage for stage in stages if stage not in known]
    if unknown:
        raise InvalidArgumentError(
            f"{label} has no node {', '.join(unknown)}; its nodes are {', '.join(nodes[: 4 * _LISTED])}..."
        )
    extractor: nn.Module = create_feature_extractor(module, list(stages), suppress_diff_warning=True)
    return extractor.eval()


def _load_weights(module: nn.Module, path: PathLike, label: str, classifier: tuple[str, ...]) -> dict[str, str]:
    """Load a file strictly, except that the classifier may be missing or have other classes; it is removed in this
    case.

    Returns:
        The file's metadata.
    """
    given, metadata = read_safetensors(path, purpose="weights", framework="pt")
    own = module.state_dict()
    heads = tuple(f"{name}." for name in classifier)
    fits = {name for name in given if name in own and given[name].shape == own[name].shape}
    missing = [name for name in own if name not in given and not name.endswith("num_batches_tracked")]
    foreign = [name for name in given if name not in own]
    shapes = [
        f"{name} {list(given[name].shape)} instead of {list(own[name].shape)}"
        for name in given
        if name in own and name not in fits
    ]
    problems = [
        f"{title} {len(others)} ({', '.join(others[:_LISTED])}{', ...' if len(others) > _LISTED else ''})"
        for title, names in (("missing", missing), ("unexpected", foreign), ("with a different shape", shapes))
        if (others := [name for name in names if not name.startswith(heads or ("\0",))])
    ]
    if problems:
        raise InvalidArgumentError(f"{os.fspath(path)}: not the weights of {label}: {'; '.join(problems)}")
    module.load_state_dict({name: given[name] for name in fits}, strict=False)
    for name in classifier:
        if not {key for key in own if key.startswith(f"{name}.")} <= fits:
            parent, _, child = name.rpartition(".")
            setattr(module.get_submodule(parent), child, nn.Identity())
    return metadata


# Import torchvision and timm only through the functions below.
# Package indexes offer a torchvision wheel whose compiled operators are linked against CUDA. With a CPU-only torch, its
# library does not load; torchvision tolerates this, but its import then refers to two missing operators (``operator
# torchvision::nms does not exist``). Vidkin does not use these operators, so declaring them is enough.
# Operators that torchvision refers to on import, whether or not its library was loaded:
_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}

# A declaration exists only as long as its Library object.
_declared: list[torch.library.Library] = []


@cache
def import_torchvision() -> Any:
    """Import torchvision, even if its compiled operators cannot be loaded.

    Raises:
        MissingPartError: torchvision is not installed, or is incompatible with torch.
    """
    try:
        if "torchvision" not in sys.modules:
            _declare_missing_operators()
        return import_part("torchvision", extra="train")
    except (RuntimeError, OSError, AttributeError, ImportError) as error:
        raise MissingPartError(
            f"torchvision {version('torchvision')} is incompatible with torch {torch.__version__} ({error}); reinstall "
            "both from one package index with matching builds (both for CUDA, or both for the CPU): "
            "pip install --force-reinstall torch torchvision"
        ) from error


@cache
def import_timm() -> Any:
    """Import timm (which imports torchvision).

    Raises:
        MissingPartError: timm or torchvision is not installed.
    """
    import_torchvision()
    return import_part("timm", extra="train")


def _declare_missing_operators() -> None:
    """Declare the operators unless torchvision's own library provides them."""
    specification = importlib.util.find_spec("torchvision")
    if specification is None or not specification.submodule_search_locations:
        return
    for folder in specification.submodule_search_locations:
        for library in sorted(Path(folder).glob("_C*")):
            try:
                torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
            except OSError:
                continue  # linked against another build of torch; handled below
    missing = [schema for name, schema in _SCHEMAS.items() if not hasattr(torch.ops.torchvision, name)]
    if missing:
        fragment = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for schema in missing:
            fragment.define(schema)  # type: ignore[no-untyped-call]
        _declared.append(fragment)
