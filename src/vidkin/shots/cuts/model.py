"""The transition network and the decision rules, as one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any

from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.models.weights import fit_state
from vidkin.shots.band.network import TransitionNetwork
from vidkin.shots.cuts.rules import CutRules
from vidkin.shots.cuts.scoring import ProposalScore

__all__ = ["CutModel"]

PathLike = str | os.PathLike[str]

_SHIPPED = "data/cuts.safetensors"
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
        if path is None:
            with resources.as_file(resources.files("vidkin.shots.cuts").joinpath(_SHIPPED)) as shipped:
                return cls.load(shipped)
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(os.fspath(path), framework="pt") as file:
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                metadata = file.metadata() or {}
            rules = parse_json(metadata["rules"])
            scores = {name: ProposalScore.from_table(rules[name]) for name in ("hard", "gradual")}
            network = TransitionNetwork(width=state["enter.weight"].shape[0], outputs=_OUTPUTS)
            model = cls(
                network.eval(), CutRules(**{**rules, **scores}), parse_json(metadata.get("provenance", "{}"))
            )
        except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{os.fspath(path)} must be a model of the detector 'cuts': {str(error).splitlines()[0]}"
            ) from error
        fit_state(network, state, source=path, label="the detector 'cuts'")
        return model
