"""Hook of MkDocs: pages that are not files in docs/ - README and its neighbors, research/, and the API."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "vidkin"

# Files beside docs/ -> their page.
BESIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


class HouseStyle(griffe.Extension):
    """Brings docstrings, which are written to be read as they stand, to the Markdown that griffe expects.

    ``:class:`Name``` becomes code, ``Example:`` a section, shapes such as ``[Q][G]`` no links, and an entry
    ``start, end: Seconds.`` one for each parameter. A loss gets the options of its
    function, which it takes when it runs.
    """

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rewrite the docstring of any object that has one."""
        if isinstance(obj, griffe.Class):
            _take_options(obj)
        if obj.docstring is None:
            return
        text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", obj.docstring.value)
        text = re.sub(r"(?m)^(\s*Example):$", r"\1s:", text)
        text = re.sub(r"(`+[^`]*`+)|\]\[", lambda match: match[1] or r"]\[", text)
        if isinstance(obj, griffe.Function | griffe.Class):
            known = {parameter.name for parameter in obj.parameters}

            def divide(match: re.Match[str]) -> str:
                names = match[2].split(", ")
                entries = [f"{match[1]}{name}: {match[3]}" for name in names]
                return "\n".join(entries) if known.issuperset(names) else match[0]

            text = re.sub(r"(?m)^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +.*)*)", divide, text)
        obj.docstring.value = text


def _take_options(loss: griffe.Class) -> None:
    """Give the ``__init__`` under ``@options_of(function)`` the parameters that it has when it runs."""
    constructor = loss.members.get("__init__")
    if not isinstance(constructor, griffe.Function):
        return
    for decorator in constructor.decorators:
        if match := re.fullmatch(r"options_of\((\w+)\)", str(decorator.value)):
            function = loss.module[match[1]]
            options = [
                parameter
                for parameter in function.parameters
                if "Tensor" not in str(parameter.annotation) and parameter.name != "self_offset"
            ]
            constructor.parameters = griffe.Parameters(constructor.parameters[0], *options)


def public_rooms() -> dict[str, list[str]]:
    """Module -> the names that it exports: what `vidkin` itself names, and every package but the command line's.

    A package whose names its parent exports, too, has no page of its own.
    """
    origins = public_names()
    modules = {*origins.values(), *(_module(path) for path in SOURCE.rglob("__init__.py"))}
    rooms: dict[str, list[str]] = {}
    for module in sorted(modules):
        names = _exported(module)
        if not names and module in origins.values():  # no package, and so without a list of its own
            names = _defined(module)
        again = set(names) <= set(rooms.get(module.rpartition(".")[0], []))
        if names and not again and not module.startswith("vidkin.cli"):
            rooms[module] = names
    return rooms


def public_names() -> dict[str, str]:
    """Name that `import vidkin` has -> the module it is from."""
    imports = [node for node in ast.walk(_tree("vidkin")) if isinstance(node, ast.ImportFrom) and node.module]
    origins = {alias.name: node.module for node in imports for alias in node.names if node.module}
    return {name: origins[name] for name in _exported("vidkin")}


def api_pages() -> Iterator[tuple[str, str]]:
    """Address and Markdown of every page of the API."""
    rooms = public_rooms()
    del rooms["vidkin"]
    lines = ["# vidkin\n", "The names of `import vidkin`. The other pages are its packages.\n"]
    lines += [f"- [`vidkin.{name}`][{module}.{name}]" for name, module in public_names().items()]
    yield "api/index.md", "\n".join([*lines, ""])
    for module, names in rooms.items():
        yield f"api/{module}.md", f"# {module}\n\n::: {module}\n    options:\n      members: {names}\n"


def research_files() -> list[Path]:
    """The studies and their results: pages, and the tables and images that they link to."""
    research = ROOT / "research"
    return sorted([*research.glob("*.md"), *(path for path in (research / "results").iterdir() if path.is_file())])


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).parent.parts)


def _tree(module: str) -> ast.Module:
    path = SOURCE.parent / module.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(source.read_text(encoding="utf-8"))


def _exported(module: str) -> list[str]:
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("__")]
    return []


def _defined(module: str) -> list[str]:
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [node.name for node in _tree(module).body if isinstance(node, kinds) and not node.name.startswith("_")]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the API where the navigation says ``api/``."""
    addresses = [address for address, _ in api_pages()]
    for entry in config.nav or []:
        if entry.get("Python") == "api/":
            entry["Python"] = [*addresses[:1], *({Path(address).stem: address} for address in addresses[1:])]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in BESIDE.items()}
    for address, text in {**pages, **dict(api_pages())}.items():
        files.append(File.generated(config, address, content=text))
    for path in research_files():
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


# How much a page counts in the search of the site, by the beginning of its address. A word in a title counts a thousand
# times: guides come before the API and the figures even where only these have it in a title.
BOOSTS = {"api/": 0.001, "research/": 0.002, "architecture.md": 0.5, "changelog.md": 0.5, "decisions.md": 0.5, "": 2}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links that are right in the repository to the page of the site, and set how much it counts in a search."""
    address = page.file.src_uri
    page.meta["search"] = {"boost": next(boost for start, boost in BOOSTS.items() if address.startswith(start))}
    beside = {page: name for name, page in BESIDE.items()}
    in_docs = address if address.startswith("research/") else f"docs/{address}"
    folder = posixpath.dirname(beside.get(address, in_docs))

    def lead(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        place = BESIDE.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(place, posixpath.dirname(address) or '.')}{match[2] or ''})"

    return re.sub(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)", lead, markdown)
