"""Tests of vidkin's architecture: allowed imports, no import cycles, light imports, few entry points.

Every import counts: at the top of a file, inside a function, and under ``if TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vidkin.similarity import EXCERPT, SURE, UNRELATED

SOURCE = Path(__file__).resolve().parents[1] / "src" / "vidkin"

# Package -> packages that it may import, in addition to `errors`, `_version` and `_base`, which all packages may
# import.
GROUND = {"errors", "_version", "_base"}
FLOOR_2 = {"media", "similarity", "metric", "features", "match"}
FLOOR_3 = FLOOR_2 | {"models", "datasets", "files"}
FLOOR_4 = FLOOR_3 | {"index", "training", "shots"}
FLOOR_5 = FLOOR_4 | {"rendering", "review"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "_version": set(),
    "_base": set(),
    "media": set(),
    "similarity": set(),
    "metric": set(),
    "features": {"media", "similarity"},
    "match": {"media", "features", "similarity"},
    "models": FLOOR_2,
    "datasets": FLOOR_2,
    "files": {"media", "similarity", "match"},
    "index": FLOOR_3,
    "training": FLOOR_3,
    "shots": FLOOR_3,
    "rendering": FLOOR_4,
    "review": FLOOR_4 | {"rendering"},
    "cli": FLOOR_5 | {"web"},
    "web": FLOOR_5,
}
# Packages that are slow to import, or may be missing.
HEAVY = frozenset({
    *("torch", "torchvision", "timm", "numpy", "sklearn", "skimage", "matplotlib", "PIL", "safetensors"),
    *("av", "lance", "lancedb", "pyarrow", "ray", "onnx", "onnxruntime", "scenedetect", "opentimelineio"),
    *("fastapi", "uvicorn", "jinja2", "scipy", "pywt"),
})  # fmt: skip
# Packages of the extras `train` and `plots`, which nothing else may need.
LEARNING = frozenset({
    *("torch", "torchvision", "timm", "sklearn", "skimage", "scipy", "pywt", "onnx", "onnxscript", "matplotlib"),
})  # fmt: skip
# Modules for training, which alone may import torch at the top. A folder includes everything in it.
LEARNERS = (
    *("vidkin.metric", "vidkin.models", "vidkin.datasets", "vidkin.training"),
    *("vidkin.features.frame_encoder", "vidkin.features.backbone", "vidkin.features.pretrained"),
    *("vidkin.review.measure_head", "vidkin.rendering.classifier", "vidkin.rendering.training"),
)
# Other modules with a function that imports such a package, and the reason.
LATE_LEARNING = {
    "vidkin.features.sessions": "torch is asked for a GPU where ONNX Runtime has none",
    "vidkin.similarity.frame_maps": "gradients of training are recomputed in blocks",
}
_PARSERS = frozenset({"json.load", "json.loads", "tomllib.load", "tomllib.loads"})


@cache
def trees() -> Mapping[str, ast.Module]:
    """Syntax trees of all modules, parsed once and on demand, because every pytest worker imports this file."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, cached because walking its tree takes longer than parsing it."""
    return tuple(ast.walk(trees()[name]))


@cache
def typing_lines(name: str) -> frozenset[int]:
    """Line numbers under ``if TYPE_CHECKING``."""
    blocks = (node for node in nodes(name) if isinstance(node, ast.If) and _checks_types(node))
    return frozenset(line for node in blocks for line in range(node.lineno, (node.end_lineno or 0) + 1))


def _checks_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@dataclass(frozen=True)
class Import:
    """An imported module: the deepest existing one of vidkin, or the top-level package of others."""

    module: str
    line: int
    late: bool


def module_name(path: Path) -> str:
    parts = ("vidkin", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}
# Modules that run before a command starts: each command's module is imported to print its help.
START = ("vidkin", "vidkin.__main__", *(name for name in MODULES if name.startswith("vidkin.cli")))


@cache
def imports(name: str) -> tuple[Import, ...]:
    """All imports of a module in line order."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return tuple(sorted(_imports(trees()[name], package, late=False), key=lambda found: found.line))


def _imports(node: ast.AST, package: str, *, late: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(_nearest_module(alias.name), child.lineno, late)
        elif isinstance(child, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - child.level + 1]
            base = ".".join([*(parents if child.level else []), *([child.module] if child.module else [])])
            for alias in child.names:
                yield Import(_nearest_module(f"{base}.{alias.name}"), child.lineno, late)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            is_typing = _checks_types(child)
            yield from _imports(child, package, late=late or is_function or is_typing)


def _nearest_module(name: str) -> str:
    if name.partition(".")[0] != "vidkin":
        return name.partition(".")[0]
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


@cache
def loaded_by(name: str) -> frozenset[str]:
    """Modules of vidkin and other packages that importing a module loads."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        current = todo.pop()
        for parent in _with_parents(current):
            if parent not in seen:
                seen.add(parent)
                if parent in MODULES:
                    todo += [found.module for found in imports(parent) if not found.late]
    return frozenset(seen)


def _with_parents(name: str) -> Iterator[str]:
    if name not in MODULES:
        yield name
        return
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def test_packages_import_only_from_lower_floors() -> None:
    upwards = set()
    for name in MODULES:
        room = name.split(".")[1] if "." in name else "__main__"
        if room == "__main__":
            continue  # the top-level package may import every package
        allowed = ALLOWED[room] | {room} | (GROUND if room not in GROUND else {"errors"})
        for found in imports(name):
            # `vidkin` itself re-exports from all packages.
            if found.module == "vidkin" or (found.module in MODULES and found.module.split(".")[1] not in allowed):
                upwards.add(f"{name}:{found.line} imports {found.module}")
    assert upwards == set()


def test_similarity_and_metric_import_only_their_array_packages() -> None:
    """Similarity uses NumPy, and torch through the array API; losses and measures use torch."""
    allowed = {"similarity": {"numpy", "array_api_compat", "torch"}, "metric": {"torch"}}
    for name in MODULES:
        room = name.split(".")[1] if "." in name else ""
        if room in allowed:
            others = {found.module for found in imports(name)} - set(sys.stdlib_module_names)
            others = {other for other in others if not other.startswith("vidkin")}
            assert others <= allowed[room], f"{name} imports {sorted(others)}"


def test_only_training_modules_import_torch() -> None:
    """No other module loads torch, SciPy, scikit-* or matplotlib, directly or indirectly."""
    loading = {
        f"{name} loads {', '.join(sorted(loaded_by(name) & LEARNING))}"
        for name in MODULES
        if not _learns(name) and loaded_by(name) & LEARNING
    }
    assert sorted(loading) == []


def test_late_imports_of_torch_are_listed() -> None:
    late = {
        name
        for name in MODULES
        if not _learns(name)
        for found in imports(name)
        if found.late and found.module in LEARNING and not _is_typing(name, found.line)
    }
    assert late == set(LATE_LEARNING)


def _learns(name: str) -> bool:
    return any(name == learner or name.startswith(f"{learner}.") for learner in LEARNERS)


def test_there_are_no_import_cycles() -> None:
    graph = {name: {found.module for found in imports(name) if found.module in MODULES} - {name} for name in MODULES}
    assert [" <-> ".join(sorted(circle)) for circle in _circles(graph)] == []


def _circles(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Strongly connected components with more than one module, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> Iterator[list[str]]:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in number:
                yield from visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], number[target])
        if lowest[name] == number[name]:
            circle = stack[stack.index(name) :]
            del stack[-len(circle) :]
            if len(circle) > 1:
                yield circle

    for name in graph:
        if name not in number:
            yield from visit(name)


def test_there_are_no_import_cycles_between_folders() -> None:
    """This includes modules named in strings of registries and commands."""
    graph: dict[str, set[str]] = {_folder(name): set() for name in MODULES}
    for name in MODULES:
        if not _is_package(name):
            graph[_folder(name)] |= {_folder(target) for target in _named_modules(name)} - {_folder(name), "vidkin"}
    assert [" <-> ".join(sorted(circle)) for circle in _circles(graph)] == []


@cache
def _named_modules(name: str) -> set[str]:
    """Modules of vidkin that a module imports or names in a string: ``"vidkin.shots.registry:open_detector"``."""
    strings = (node.value for node in nodes(name) if isinstance(node, ast.Constant))
    pattern = re.compile(r"vidkin(\.\w+)+(:\w+)?")
    targets = {
        _nearest_module(text.partition(":")[0]) for text in strings if isinstance(text, str) and pattern.fullmatch(text)
    }
    return {*targets, *(found.module for found in imports(name) if found.module in MODULES)} - {
        name,
        "vidkin",
    }


def _is_package(name: str) -> bool:
    return MODULES[name].name == "__init__.py"


def _folder(name: str) -> str:
    return name if _is_package(name) else name.rpartition(".")[0]


def test_cycles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": []}
    assert [sorted(circle) for circle in _circles(graph)] == [["a", "b", "c"]]


# Folders that load heavy packages through lazy names of their package, so that displaying an index loads no search
# code.
REACHING = {"vidkin.index.query"}


def test_modules_are_imported_late_only_to_avoid_loading_a_heavy_package() -> None:
    """A function may import a module of vidkin only if that loads a heavy package that is not loaded yet."""
    started = frozenset[str]().union(*(loaded_by(name) for name in START))
    needless = {
        (name, found.line, found.module)
        for name in MODULES
        if name not in started
        for found in imports(name)
        if found.late and found.module in MODULES and not _is_typing(name, found.line)
        if not (loaded_by(found.module) & HEAVY) - loaded_by(name) and _folder(found.module) not in REACHING
    }
    assert sorted(needless) == []


def _is_typing(name: str, line: int) -> bool:
    return line in typing_lines(name)


def test_vidkin_never_names_the_other_packages_of_the_repository() -> None:
    """The contents of `research/` and `scale/` are found through entry points."""
    named = re.compile(r"vidkin_(research|scale)\.")
    assert [name for name, path in MODULES.items() if named.search(path.read_text("utf-8"))] == []


def test_tests_mirror_the_package() -> None:
    """Each test folder has the name of a folder of the package, except for tests of documentation and fuzzing."""
    tests = Path(__file__).parent
    odd = {
        path.relative_to(tests).as_posix()
        for path in tests.rglob("test_*.py")
        if (parts := path.relative_to(tests).parts[:-1]) and parts[0] not in ("documentation", "fuzz")
        if not (SOURCE.joinpath(*parts)).is_dir()
    }
    assert odd == set()


TESTS = Path(__file__).resolve().parent
# Modules that count as public because `vidkin.cli` imports nothing before Ctrl-C can interrupt it.
PUBLIC_MODULES = frozenset({"vidkin.cli.app", "vidkin.cli.commands", "vidkin.cli.extra_options"})
# Test files that use internal modules of their own package other than the one they are named after. May only shrink.
INSIDERS: dict[str, set[str]] = {
    "cli/test_duplicates.py": {"console"},
    "cli/test_shots.py": {"options"},
    "datasets/augmentation/test_augmentation.py": {
        "augmentation.degrade",
        "augmentation.overlays",
        "augmentation.pairs",
    },
    "features/test_onnx_strangers.py": {"sessions"},
    "features/test_square_extractor.py": {"sessions"},
    "files/films.py": {"picture_proof", "small_frames"},
    "files/test_apply_power.py": {"trash"},
    "files/test_sound_proof.py": {"sound_packets", "stretches"},
    "index/duplicates/test_differences.py": {"duplicates.placement"},
    "index/duplicates/test_grouping.py": {"duplicates.comparisons"},
    "index/duplicates/test_pairing.py": {"storage.records"},
    "index/duplicates/test_scope.py": {"duplicates.comparisons"},
    "index/ingest/killed_writer.py": {
        "storage.feature_files",
        "storage.store",
        "storage.video_table",
        "storage.window_files",
        "storage.window_index",
    },
    "index/ingest/test_processes.py": {"ingest.executor", "ingest.worker"},
    "index/ingest/test_session_batch_writer.py": {"ingest.report"},
    "index/ingest/test_session_same_content.py": {"storage.files"},
    "index/query/test_learned_scale.py": {"query.query"},
    "index/query/test_query_watching.py": {"query.watching"},
    "index/query/test_stages.py": {
        "duplicates.comparisons",
        "duplicates.find",
        "duplicates.pairing",
        "query.candidates",
        "query.stored",
        "query.stage_recall",
    },
    "index/recurring/test_clips.py": {"recurring.ends"},
    "index/recurring/test_ends.py": {"recurring.stretches"},
    "index/recurring/test_find.py": {"recurring.heard", "recurring.stretches"},
    "index/recurring/test_groups.py": {"recurring.ends"},
    "index/storage/test_feature_files.py": {"storage.records"},
    "index/storage/test_files.py": {"storage.feature_files"},
    "index/storage/test_stores.py": {"storage.store", "storage.video_table", "storage.window_index"},
    "media/makers.py": {"convert"},
    "media/test_broken.py": {"reader"},
    "media/test_memory.py": {"reader"},
    "media/test_odd_files.py": {"convert", "sampling"},
    "media/test_piece_writer_plan.py": {"stored_pictures"},
    "media/test_probing.py": {"reader"},
    "metric/losses/test_average_precision_hierarchical.py": {"losses.score_pairs"},
    "metric/losses/test_quad_linear.py": {"losses.score_pairs"},
    "metric/measures/test_average_precision.py": {"measures.ranking"},
    "models/test_comparator_map_network.py": {"comparator_extractor"},
    "models/test_stored_graphs.py": {"comparator_extractor", "encoder", "export", "extractor"},
    "shots/test_finish.py": {"network"},
    "similarity/test_numpy_and_torch.py": {"frame_maps"},
    "training/test_clip_views.py": {"clip_footage"},
    "web/test_app.py": {"lanes"},
    "web/test_page_speed.py": {"groups", "site"},
    "web/test_uploads.py": {"lanes"},
}


@cache
def exports(name: str) -> frozenset[str]:
    """The names in ``__all__`` of a package; empty for other modules."""
    found = (node for node in trees()[name].body if _is_package(name) and isinstance(node, ast.Assign))
    lists = [ast.literal_eval(node.value) for node in found if ast.unparse(node.targets[0]) == "__all__"]
    return frozenset(lists[0] if lists else ())


def inner_modules(tree: ast.Module) -> Iterator[str]:
    """Internal modules that a test names, in an import or in a call of `monkeypatch.setattr`."""
    for node in ast.walk(tree):
        named: list[tuple[str, str]] = []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            named = [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            named = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            texts = (part.value for part in node.args[:1] if isinstance(part, ast.Constant))
            named = [text.rpartition(".")[::2] for text in texts if isinstance(text, str)]
        for base, name in named:
            module = _nearest_module(f"{base}.{name}".rstrip("."))
            is_ground = not module.startswith("vidkin.") or module.split(".")[1] in GROUND
            is_exported = base in MODULES and name in exports(base)
            if not (is_ground or is_exported or exports(module) or module in PUBLIC_MODULES or module.count(".") == 1):
                yield module


def test_tests_use_public_names() -> None:
    """Tests use no internals of other packages, and of their own only the module they are named after."""
    strangers, insiders = set(), {}
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS)
        own, beside = place.parts[0], set()
        for module in inner_modules(ast.parse(path.read_text(encoding="utf-8"))):
            _, room, *_, leaf = module.split(".")
            if room != own:
                strangers.add(f"{place.as_posix()} names {module}")
            elif not f"{path.stem}_".startswith(f"test_{leaf}_"):
                beside.add(module.removeprefix(f"vidkin.{room}."))
        if beside:
            insiders[place.as_posix()] = beside
    assert strangers == set()
    assert insiders == INSIDERS


def test_uses_of_internal_modules_are_found() -> None:
    inside = [
        "from vidkin.files.proof import Prover",
        "from vidkin.files import proof",
        "import vidkin.files.proof",
        "monkeypatch.setattr('vidkin.files.proof.prove', None)",
    ]
    public = ["from vidkin.files import Prover", "from vidkin.metric import losses", "from vidkin.cli.app import app"]
    for code, expected in [*((line, ["vidkin.files.proof"]) for line in inside), *((line, []) for line in public)]:
        assert list(inner_modules(ast.parse(code))) == expected, code


def test_importing_vidkin_loads_no_heavy_package() -> None:
    code = (
        f"import sys, logging; import {', '.join(START)}; "
        f"print([m for m in {sorted(HEAVY)!r} if m in sys.modules], logging.getLogger().handlers, "
        "logging.getLogger('vidkin').handlers)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] [] []"


def test_files_named_on_the_architecture_page_exist() -> None:
    root = SOURCE.parents[1]
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w/]+(?:\.py|/))`", page)
    assert len(paths) > 60
    missing = [path for path in paths if not any((place / path).exists() for place in (SOURCE, root))]
    assert missing == []
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert {path.partition("/")[0] for path in paths if path.count("/") == 1 and path.endswith("/")} >= rooms


def test_classes_and_functions_named_on_the_architecture_page_exist() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    # `CamelCase`, `Class.member` and `with_underscores`, with or without arguments.
    named = set(re.findall(r"`((?:[A-Z]\w*[a-z]\w*\.)?(?:[A-Z]\w*[a-z]\w*|\w*_\w*))(?:\([^`]*\))?`", page))
    named |= {name for pair in re.findall(r"`([A-Z]\w*[a-z]\w*)\.(\w+)(?:\([^`]*\))?`", page) for name in pair}
    assert len(named) > 40
    defined = set().union(*(_defined_names(name) for name in MODULES))
    everything = (node for name in MODULES for node in nodes(name))
    defined |= {node.attr for node in everything if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    assert {name for name in named if name.rpartition(".")[2] not in defined} == set()


def test_public_names_exist() -> None:
    import vidkin

    assert list(vidkin.__all__) == sorted(set(vidkin.__all__))
    for name in vidkin.__all__:
        assert getattr(vidkin, name) is not None


def test_each_module_defines_its_exports_once() -> None:
    for name, tree in trees().items():
        lists = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        assert len(lists) <= 1, name
        exported = Counter(entry for entries in lists for entry in entries)
        assert set(exported.values()) <= {1}, name
        if "__getattr__" not in _defined_names(name):  # names provided by __getattr__ are not defined here
            assert set(exported) <= _defined_names(name), f"{name} exports what it does not have"


@cache
def _defined_names(name: str) -> frozenset[str]:
    names: set[str] = set()
    for node in nodes(name):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


def test_class_and_type_names_have_one_meaning() -> None:
    """Class names are unique; a type alias may be repeated in other modules, but only with the same value."""
    meanings: dict[str, set[str]] = {}
    for module, tree in trees().items():
        for node in tree.body:
            for name, meaning in _types(module, node):
                meanings.setdefault(name, set()).add(meaning)
    assert {name: sorted(found) for name, found in meanings.items() if len(found) > 1} == {}
    assert {"PathLike", "OnProgress", "Piece"} <= set(meanings)  # aliases of a union, a callable, and a class


def _types(module: str, node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Name and meaning of a class, or of a value assigned to a name in class style."""
    if isinstance(node, ast.ClassDef):
        yield node.name, module
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", target.id):
                yield target.id, ast.unparse(node.value)


def test_names_with_two_meanings_are_found() -> None:
    code = "class Upload: ...\nState = Literal['a']\nOnProgress: TypeAlias = Callable[[int], None]\nLIMIT = 3"
    assert [pair for node in ast.parse(code).body for pair in _types("web", node)] == [
        ("Upload", "web"),
        ("State", "Literal['a']"),
        ("OnProgress", "Callable[[int], None]"),
    ]


def find_banners(source: str) -> list[str]:
    """Find top-level comments between blank lines, which are headings of a section that should be a separate file."""
    return re.findall(r"\n\n(# .*)\n\n", source)


def test_files_have_no_section_headings() -> None:
    banners = {path.name: find_banners(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: found for name, found in banners.items() if found} == {}
    assert find_banners("X = 1\n\n\n# Sums of rows.\n\n\ndef f(): ...\n") == ["# Sums of rows."]


def test_untrusted_json_and_toml_are_parsed_in_one_place() -> None:
    """Only these modules handle the RecursionError for documents that are nested too deeply."""
    parsers = {
        f"{name}:{node.lineno}"
        for name in MODULES
        for node in nodes(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in _PARSERS
    }
    assert {place.partition(":")[0] for place in parsers} == {
        "vidkin._base.values",
        "vidkin._base.toml",
    }


def test_tolerance_for_equal_times_is_defined_once() -> None:
    """Times are compared by functions of `vidkin.media.frames`, and in the web pages with the constant of `base.js`."""
    found = {f"{name}:{node.lineno}" for name in MODULES for node in nodes(name) if _allows_rounding_of_times(node)}
    assert {place.partition(":")[0] for place in found} == {"vidkin.media.frames"}
    scripts = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.glob("web/static/js/*.js")}
    assert [name for name, text in scripts.items() if "1e-6" in text] == ["base.js"]
    assert "SAME_TIME = 1e-6;" in scripts["base.js"]


def _allows_rounding_of_times(node: ast.AST) -> bool:
    """Whether the time tolerance is added, subtracted or compared, by name or as a literal."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        sums = (part for part in ast.walk(node) if isinstance(part, ast.BinOp))
        parts = [node.left, *node.comparators, *(side for part in sums for side in (part.left, part.right))]
    else:
        return False
    if not any(_is_tolerance(part) for part in parts):
        return False
    # The same literal may keep an energy, a norm or a weight above 0.
    return _is_about(node, re.compile(r"SAME_TIME|times?\b|timestamps?|starts?\b|ends?\b|at\b|moments?|seconds"))


def _is_tolerance(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):  # twice the tolerance
        return _is_tolerance(node.left) or _is_tolerance(node.right)
    return ast.unparse(node) == "SAME_TIME" or (isinstance(node, ast.Constant) and node.value == 1e-6)


def _is_about(node: ast.AST, words: re.Pattern[str]) -> bool:
    names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    members = (part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute))
    return any(words.search(name) for name in (*names, *members))


def test_literal_time_tolerances_are_found() -> None:
    by_hand = ["time < other + 1e-6", "start - SAME_TIME", "shot.end <= end + 2 * SAME_TIME", "at + 1e-6"]
    others = ["is_before(time, other)", "energy + 1e-6", "max(length, SAME_TIME)", "time + 1.0"]
    for written, expected in [*((text, True) for text in by_hand), *((text, False) for text in others)]:
        assert any(map(_allows_rounding_of_times, ast.walk(ast.parse(written)))) is expected, written


def test_score_thresholds_are_defined_once() -> None:
    """`vidkin.similarity.scale` defines what scores mean; no other module compares scores to literals."""
    found = {f"{name}:{line}" for name in MODULES for node in nodes(name) for line in _points_by_hand(node)}
    assert found == set()
    script = re.compile(r"(score|sound|picture) *[<>]=? *0?\.\d")
    assert [path.name for path in SOURCE.glob("web/static/js/*.js") if script.search(path.read_text("utf-8"))] == []


def _points_by_hand(node: ast.AST) -> Iterator[int]:
    """Line numbers where a score is compared to a literal threshold, or a literal is the default of `threshold`."""
    points = {UNRELATED, EXCERPT, SURE}

    def is_point(value: ast.AST | None) -> bool:
        return isinstance(value, ast.Constant) and value.value in points

    if isinstance(node, ast.Compare) and any(is_point(part) for part in (node.left, *node.comparators)):
        if _is_about(node, re.compile(r"\b(score|sound|picture|heard|seen)\b")):
            yield node.lineno
    elif isinstance(node, ast.AnnAssign) and is_point(node.value) and ast.unparse(node.target) == "threshold":
        yield node.lineno
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        defaults: list[tuple[ast.arg, ast.expr | None]] = [
            *zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        yield from (one.lineno for one, value in defaults if one.arg == "threshold" and is_point(value))


def test_literal_score_thresholds_are_found() -> None:
    by_hand = ["pair.score >= 0.2", "0.7 <= heard", "def f(*, threshold: float = 0.7): ...", "threshold: float = 0.4"]
    others = ["pair.score >= SURE", "share >= 0.2", "def f(threshold=SURE): ...", "def f(margin=0.7): ..."]
    for written, expected in [*((text, True) for text in by_hand), *((text, False) for text in others)]:
        assert any(line for node in ast.walk(ast.parse(written)) for line in _points_by_hand(node)) is expected, written


# Modules that convert a path or an address to a place, and the entry point that does so.
DOORS = {
    "vidkin.index.collection": "Index.open",
    "vidkin.rendering.machine": "inspect_index",
    "vidkin.web.app": "create_app",
    "vidkin.cli.options": "commands",
    "vidkin.cli.apply": "a command",
    "vidkin.cli.doctor": "a command",
}


def test_places_are_opened_only_at_entry_points() -> None:
    opening = {
        name
        for name in MODULES
        for node in nodes(name)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "open_place"
    }
    assert opening == set(DOORS)
