"""Names of pieces and images: fields, widths, and templates that are not valid file names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.detections import detection
from vidkin.errors import InvalidArgumentError
from vidkin.shots import NameTemplate


def test_shot_numbers_have_at_least_three_digits() -> None:
    few = detection("path/to/día 山.mp4")
    assert NameTemplate().format(few, 2) == "día 山-002"
    assert NameTemplate().format(few, 2, image=3, images=4) == "día 山-002-3"
    many = replace(few, shots=few.shots * 400)
    assert NameTemplate().format(many, 7) == "día 山-0007"


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{name}-{shot:03d}", "film-002"),
        ("{shot} of {shots}, {kind}", "2 of 3, hard"),
        ("{start:06.2f}-{end:.0f} {name:>6} {shot}", "002.00-4   film 2"),
        ("f{start_frame}-{end_frame}", "f20-45"),
        ("{{{shot}}}", "{2}"),
    ],
)
def test_template_names_the_files(template: str, name: str) -> None:
    assert NameTemplate(template).format(detection(), 2) == name


def test_images_of_a_shot_never_share_a_name() -> None:
    assert NameTemplate("{shot}").format(detection(), 2, image=3, images=4) == "2-3"
    assert NameTemplate("{shot}_{image:02d}").format(detection(), 2, image=3, images=4) == "2_03"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{name}", r"template must include \{shot\} or \{start_frame\}, or shots would share a name"),
        ("{shot}{number}", "template has no field 'number'; choose from name, shot, "),
        ("{shot.__class__}", "template has no field 'shot.__class__'"),
        ("{shot[0]}", r"template has no field 'shot\[0\]'"),
        ("{}{shot}", "template has no field ''"),
        ("{shot!r}", "template must be a pattern such as .*: shot cannot have the format 'r'"),
        ("{shot:{image}}", "template must be a pattern such as"),
        ("{shot:99999999d}", "template must be a pattern such as .*: shot cannot have the format '99999999d'"),
        ("{shot:s}", "template must be a pattern such as .*: Unknown format code 's'"),
        ("{shot", "template must be a pattern such as .*: expected '}'"),
        ("{name}/{shot}", "template must be a file name without folders"),
        ("..{shot}", "template must be a file name without folders that does not begin with a dot"),
    ],
)
def test_invalid_name_templates_are_rejected(template: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        NameTemplate(template)
