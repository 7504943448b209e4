"""Missing packages of extras are reported with an install hint."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vidkin._base.registry import import_part
from vidkin.errors import MissingPartError


def test_module_is_imported_and_a_missing_package_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert import_part("json.decoder", extra="train").JSONDecoder
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingPartError, match=r"scikit-learn is not installed; .* pip install .*\[train\]\""):
        import_part("sklearn", extra="train")
    # A missing dependency of an installed package is reported as is.
    (tmp_path / "half_installed.py").write_text("import surely_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_there"):
        import_part("half_installed", extra="train")
