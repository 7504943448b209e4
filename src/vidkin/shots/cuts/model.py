"""The transition network and the decision rules, as one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

from vidkin._base.plain_values import parse_json
from vidkin.shots.band.network import TransitionNetwork, read_network, refuse_unreadable
from vidkin.shots.cuts.rules import CutRules
from vidkin.shots.cuts.scoring import ProposalScore

__all__ = ["CutModel"]

PathLike = str | os.PathLike[str]

_OUTPUTS = 5


@dataclass(frozen=True, slots=True, eq=False)
class CutModel:
    """The trained parts of the default detector.

    Attributes:
        network: Network with five answers per frame, from the band of the film's self-similarity.
        rules: Rules that decide about proposals, usable only with the frame encoder they were fitted with.
        provenance: Training data and results, as plain values.
    """

    network: TransitionNetwork
    rules: CutRules
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: PathLike) -> None:
        """Write one safetensors file."""
        from safetensors.torch import save_file

        metadata = {"rules": json.dumps(asdict(self.rules)), "provenance": json.dumps(dict(self.provenance))}
        state = {name: value.contiguous() for name, value in self.network.state_dict().items()}
        save_file(state, os.fspath(path), metadata=metadata)

    @classmethod
    def load(cls, path: PathLike | None = None) -> CutModel:
        """Load a file written by :meth:`save`; None is the bundled model.

        Raises:
            InvalidArgumentError: The file does not hold such a model.
        """
        shipped = resources.files("vidkin.shots").joinpath("data/cuts.safetensors")
        file = str(shipped) if path is None else os.fspath(path)
        with refuse_unreadable(f"{file} must be a model of the detector 'cuts'"):
            network, metadata = read_network(file, outputs=_OUTPUTS)
            rules = parse_json(metadata["rules"])
            scores = {name: ProposalScore.from_table(rules[name]) for name in ("hard", "gradual")}
            return cls(network, CutRules(**{**rules, **scores}), parse_json(metadata.get("provenance", "{}")))
