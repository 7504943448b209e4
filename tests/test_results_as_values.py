"""Every public result round-trips through plain values, as described by the schema in the package."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
import types
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Union, get_args, get_origin

import jsonschema
import numpy as np
import pytest

import vidkin
from vidkin._base.plain import field_types
from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.index import Coverage, FoundGroup, SharedStretch

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "site" / "schemas.py"


def _script() -> ModuleType:
    """The script that writes the schema, which is not part of a package."""
    specification = importlib.util.spec_from_file_location("schemas", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["schemas"] = module
    specification.loader.exec_module(module)
    return module


script = _script()
SCHEMA: dict[str, Any] = json.loads(script.SCHEMA.read_text(encoding="utf-8"))
# Fields that need values other than the generic ones.
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "Shot": {"end": 0.75, "end_frame": 2},
    "BlackStretch": {"end": 0.75, "end_frame": 2},
    "Occurrence": {"end": 0.75},
    "Segment": {"query_box": (0.0, 0.0, 0.5, 1.0), "target_box": (0.0, 0.25, 1.0, 1.0), "turned": 90},
    "TimeStretch": {"removed_end": 0.75},
    "PairLabel": {"second": "b"},
    "CollectionMap": {"points": np.full((2, 2), 0.5, np.float32), "spans": np.zeros((2, 2))},
    "FileState": {"companions": ()},
    "Comparison": {"map": np.full((2, 2), 0.5, np.float32)},
}
EXAMPLES: dict[str, Any] = {}


def example(kind: type[Any]) -> Any:
    """A result whose fields all differ from their defaults, as far as their types allow."""
    if kind.__name__ not in EXAMPLES:
        fixed = FIELDS.get(kind.__name__, {})
        values = {name: fixed[name] if name in fixed else value(each) for name, each in field_types(kind).items()}
        if kind.__name__ == "DuplicateGroup":
            member = values["members"][0]
            values["members"] = (member, dataclasses.replace(member, best=False, stays="", doubt="", lacking=0.0))
        EXAMPLES[kind.__name__] = kind(**values)
    return EXAMPLES[kind.__name__]


def value(kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return value(next(each for each in arguments if each is not type(None)))
    if origin is Literal:
        return arguments[-1]
    if origin is not None and issubclass(origin, Mapping):
        return {arguments[0](1): value(arguments[1])}
    if origin is tuple:
        some = [arguments[0]] * 2 if arguments[1:] == (...,) else arguments
        return tuple(value(each) for each in some)
    if origin is np.ndarray:
        number = get_args(arguments[1])[0]
        return np.array([0, 1], np.float64 if number is np.floating else number)
    if dataclasses.is_dataclass(kind):
        return example(kind)  # type: ignore[arg-type]
    return {bool: True, int: 1, float: 0.5, str: "a", Path: Path("a"), Fraction: Fraction(1, 2)}[kind]


RESULTS = script.public_results()


def test_all_public_results_are_tested() -> None:
    names = {kind.__name__ for kind in RESULTS}
    assert {"Match", "Comparison", "Coverage", "DuplicateGroup", "ShotDetection", "RecurringGroup"} <= names
    assert {"IngestReport", "IndexInfo", "VideoRecord", "Shot", "Segment", "Proof", "SoundOffset"} <= names
    public = {getattr(vidkin, name) for name in vidkin.__all__}
    assert {kind for kind in public if isinstance(kind, type) and issubclass(kind, Result)} <= set(RESULTS)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_result_round_trips_through_plain_values(kind: type[Result]) -> None:
    result = example(kind)
    values = json.loads(json.dumps(result.to_dict()))
    again = kind.from_dict(values)
    assert type(again) is kind
    assert again.to_dict() == result.to_dict()
    for name in field_types(kind):
        one, other = getattr(result, name), getattr(again, name)
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
        elif "curve" not in name:
            assert one == other


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_plain_values_match_the_schema_exactly(kind: type[Result]) -> None:
    values = json.loads(json.dumps(example(kind).to_dict()))
    # The schema itself is validated once below, because that takes longer.
    jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind.__name__}", "$defs": SCHEMA["$defs"]}).validate(values)
    assert list(values) == list(SCHEMA["$defs"][kind.__name__]["properties"])
    assert SCHEMA["$defs"][kind.__name__]["required"] == list(values)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("wrong", [None, [], "a", {}, {"a": 1}], ids=repr)
def test_values_that_are_not_a_result_are_refused_with_a_message(kind: type[Result], wrong: Any) -> None:
    if all(field.default is not dataclasses.MISSING for field in dataclasses.fields(kind)) and isinstance(wrong, dict):
        kind.from_dict(wrong)
        return
    with pytest.raises(InvalidArgumentError, match="must"):
        kind.from_dict(wrong)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_invalid_value_is_refused_with_the_field_name(kind: type[Result]) -> None:
    values = example(kind).to_dict()
    for name in values:
        try:
            kind.from_dict({**values, name: object()})
        except InvalidArgumentError:
            continue
        assert name not in field_types(kind), name


def test_withdrawn_group_round_trips() -> None:
    gone = FoundGroup(7, 9, True, None)
    assert FoundGroup.from_dict(gone.to_dict()) == gone


def test_schema_in_the_package_is_current() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert script.made_schema() == SCHEMA, "python docs/site/schemas.py"


def test_short_dictionary_omits_per_frame_data() -> None:
    detection = example(vidkin.ShotDetection)
    long = {"curve", "frame_times", "stream", "critical"}
    assert set(detection.to_dict()) - set(detection.to_dict(short=True)) == long


def test_comparison_and_coverage_have_images_and_a_table(tmp_path: Path) -> None:
    compared = dataclasses.replace(example(vidkin.Comparison), query="/a/one.mp4", target="/a/two.mp4")
    assert [card.path for card in compared.cards()] == ["/a/one.mp4", "/a/two.mp4"] * 2
    assert [card.time for card in compared.cards()] == [0.5] * 4
    assert compared.cards()[0].title == "one.mp4 0.5 - 0.5 s"
    assert compared.table_rows() == [segment.to_dict() for segment in compared.segments]
    stretches = (SharedStretch(1.0, 4.0, "/a/source.mp4", 11.0, 14.0, 0.9),)
    coverage = Coverage("/a/film.mp4", 10.0, stretches)
    assert [(card.path, card.time) for card in coverage.cards()] == [("/a/film.mp4", 2.5)]
    assert coverage.cards()[0].facts == "source.mp4 from 11.0 s, score 0.90"
    assert coverage.table_rows() == [stretches[0].to_dict()]
    for result in (compared, coverage):
        vidkin.show(result).save(tmp_path / "page.html")
        assert "no image" in (tmp_path / "page.html").read_text(encoding="utf-8")
