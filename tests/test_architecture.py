"""The house of vidkin as a test: rooms import only downwards, nothing heavy at import, names exported once."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "vidkin"

# Room -> rooms that it may import, in-function and TYPE_CHECKING imports included. Every room may import the ground:
# `errors`, `_version` and `_base`.
GROUND = {"errors", "_version", "_base"}
FLOOR_3 = {"media", "similarity", "metric", "features"}
FLOOR_4 = FLOOR_3 | {"models", "datasets"}
RENDERING = FLOOR_4 | {"index", "training", "shots"}
EVERYTHING = RENDERING | {"experiments", "rendering"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "_version": set(),
    "_base": set(),
    "media": set(),
    "similarity": set(),
    "metric": set(),
    "features": {"media", "similarity"},
    "models": FLOOR_3,
    "datasets": FLOOR_3,
    "index": FLOOR_4,
    "training": FLOOR_4,
    "shots": FLOOR_4,
    "rendering": RENDERING,
    "experiments": EVERYTHING,
    "cli": EVERYTHING,
    "web": EVERYTHING,
}
HEAVY = (
    "torch",
    "numpy",
    "lancedb",
    "lance",
    "pyarrow",
    "av",
    "timm",
    "torchvision",
    "sklearn",
    "skimage",
    "ray",
)


def module_name(path: Path) -> str:
    parts = ("vidkin", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Absolute names of the vidkin modules that a file imports, wherever in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    found: set[str] = set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*stem, base] if base else stem)
            found.add(base)
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "vidkin"}


FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_import_only_downwards(path: Path) -> None:
    parts = path.relative_to(SOURCE).parts
    if len(parts) == 1 and parts[0] not in {"errors.py", "_version.py"}:
        return  # vidkin/__init__.py is the public surface and may name every room
    room = parts[0].removesuffix(".py")
    allowed = ALLOWED[room] | {room} | (GROUND if room not in GROUND else {"errors"})
    rooms = {name.split(".")[1] for name in imported_modules(path) if name.count(".") >= 1}
    rooms &= set(ALLOWED)
    assert rooms <= allowed, f"{path.name} of {room} imports {sorted(rooms - allowed)}"


def test_similarity_and_metric_stand_on_torch_alone() -> None:
    for room in ("similarity", "metric"):
        for path in sorted((SOURCE / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                for name in names:
                    top = name.split(".")[0]
                    assert top in sys.stdlib_module_names or top in {"torch", "vidkin"}, f"{path}: {name}"


def test_no_import_cycles() -> None:
    graph = {
        name: {
            target
            for target in imported_modules(path, top_level_only=True)
            if target in MODULES and target != name
        }
        for name, path in MODULES.items()
    }
    # A package that re-exports its own modules is not a cycle as long as these do not import the package.
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name in done:
            return
        for target in sorted(graph[name]):
            visit(target, (*trail, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_importing_vidkin_loads_nothing_heavy() -> None:
    code = (
        "import sys, logging; import vidkin, vidkin.cli; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], logging.getLogger().handlers, "
        "logging.getLogger('vidkin').handlers)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] [] []"


def test_public_names_are_exported_once_and_exist() -> None:
    import vidkin

    assert list(vidkin.__all__) == sorted(set(vidkin.__all__))
    for name in vidkin.__all__:
        assert getattr(vidkin, name) is not None


def test_files_and_functions_stay_short() -> None:
    long_files = {}
    long_functions = []
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 420:
            long_files[path.name] = text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > 60:
                    long_functions.append(f"{path.name}:{node.name} ({lines})")
    assert not long_files
    assert not long_functions
