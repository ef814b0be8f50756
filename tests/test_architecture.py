"""The rules of the code base, checked by parsing the source. For each rule, one test is a snippet that breaks it."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

FLOORS = (
    ("mt.errors", "mt.processes"),
    ("mt.languages", "mt.section", "mt.arguments"),
    ("mt.data_config",),
    ("mt.config", "mt.files", "mt.bundled", "mt.arrays"),
    ("mt.recipe", "mt.distributed"),
    ("mt.tokenizer", "mt.evaluation", "mt.text", "mt.model", "mt.decoding.options", "mt.decoding.hypothesis"),
    ("mt.vocabulary",),
    ("mt.kernels", "mt.source_bigrams", "mt.description"),
    ("mt.data", "mt.decoding", "mt.checkpoint"),
    ("mt.engine",),
    ("mt.scoring",),
    ("mt.pipeline",),
    ("mt.training", "mt.interop", "mt.insight"),
    ("mt.build", "mt.language_model"),
    ("mt",),
    ("service", "mt.cli"),
    ("service.verbs",),
    ("mt.__main__", "scripts"),
)
"""Packages, lowest floor first. A file imports from lower floors and its own package; `mt` is `mt/__init__.py`."""

EXCEPTIONS = {("mt.cli.serve", "service")}
"""The verb that runs the service: module and the package that it may import."""

OWNERS = {
    "langcodes": ("mt.languages",),
    "sentencepiece": ("mt.tokenizer",),
    "sacrebleu": ("mt.evaluation",),
    "sacremoses": ("mt.evaluation",),
    "sentencex": ("mt.text.segment",),
    "py3langid": ("mt.text.language_detection",),
    "docx": ("mt.text.documents.pdf",),
    "fluent": ("mt.text.documents.fluent",),
    "lxml": (*(f"mt.text.documents.{name}" for name in ("office", "run_items", "runs")), "scripts.attack.mutations"),
    "markdown_it": ("mt.text.documents.markdown", "mt.text.documents.markdown_inline"),
    "pypdfium2": ("mt.text.documents.pdf_lines",),
    "huggingface_hub": ("mt.interop",),
    "transformers": ("mt.interop", "scripts.benchmark"),
    "yaml": ("mt.interop", "mt.text.documents.yaml"),
    "ctranslate2": ("mt.interop", "scripts.benchmark"),
    "fastapi": ("service",),
    "starlette": ("service",),
    "uvicorn": ("service",),
    "uvloop": ("service",),
    "httptools": ("service",),
    "ray": ("mt.cli.translate_on_ray",),
    "pyarrow": ("mt.cli.translate_on_ray",),
    "matplotlib": ("mt.training", "mt.insight"),
}

TOP_LEVEL = {
    *("mt", "service", "scripts", "tests", "pyproject.toml", "Dockerfile", "README.md"),
    *("LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "requirements"),
}

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7

CEILINGS = {
    "mt.build": 1_233,
    "mt.cli": 3_091,
    "mt.data": 2_231,
    "mt.decoding": 1_523,
    "mt.engine": 2_688,
    "mt.insight": 1_196,
    "mt.interop": 2_619,
    "mt.kernels": 1_771,
    "mt.language_model": 316,
    "mt.model": 891,
    "mt.pipeline": 4_178,
    "mt.scoring": 405,
    "mt.text": 14_858,
    "mt.training": 1_804,
    "mt": 3_031,
    "service.access": 942,
    "service.glossaries": 449,
    "service.http": 1_552,
    "service.memories": 745,
    "service.parsers": 686,
    "service.routes": 2_603,
    "service.translation": 2_008,
    "service.verbs": 375,
    "service.workers": 2_453,
    "service": 2_450,
}
"""Most lines of Python in each folder; `mt` and `service` count only the files of the folder itself.

What does not win leaves. A change that raises a ceiling says why in its commit.
"""

Sources = Mapping[str, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, itself first."""
    return tuple(ast.walk(ast.parse(source)))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_sources(*rooms: str) -> dict[str, str]:
    paths = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    assert paths
    return {module_name(path): path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return read_sources("mt", "service", "scripts")


def within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def room_of(module: str) -> str | None:
    """The smallest room that a module lies in. Only `import mt` itself goes through the front door."""
    rooms = (room for floor in FLOORS for room in floor if module == room or (room != "mt" and within(module, room)))
    return max(rooms, key=len, default=None)


def imports(module: str, sources: Sources) -> Iterator[str]:
    """What a module imports, as full names: `from mt import errors` is mt.errors, `from mt import Translator` mt."""
    package = module if any(other.startswith(module + ".") for other in sources) else module.rpartition(".")[0]
    for node in nodes(sources[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in sources else base


def is_ours(module: str) -> bool:
    return module.split(".")[0] in ("mt", "scripts", "service")


def floor_problems(sources: Sources) -> list[str]:
    height = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    found = []
    for module in sources:
        here = room_of(module)
        if here is None:
            found.append(f"{module} lies in no room of the design card")
            continue
        for target in filter(is_ours, imports(module, sources)):
            there = room_of(target)
            if there is None:
                found.append(f"{module} imports {target}, which lies in no room of the design card")
            elif there != here and height[there] >= height[here] and (module, there) not in EXCEPTIONS:
                found.append(f"{module} must not import {target}: {there} is not below {here}")
    return found


def circles(sources: Sources) -> list[str]:
    graph = {module: sorted(set(imports(module, sources)) & sources.keys()) for module in sources}
    found: list[str] = []
    finished: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            found.append(" -> ".join((*path[path.index(module) :], module)))
        elif module not in finished:
            for target in graph[module]:
                visit(target, (*path, module))
            finished.add(module)

    for module in graph:
        visit(module, ())
    return found


def breaches(sources: Sources, kind: type[ast.AST] | UnionType, breach: Callable[[Any], str]) -> list[str]:
    """What `breach` says of the nodes of a kind, with module and line; "" means that a node keeps the rule."""
    return [
        f"{module}, line {getattr(node, 'lineno', 0)}: {text}"
        for module, source in sources.items()
        for node in nodes(source)
        if isinstance(node, kind) and (text := breach(node))
    ]


def hidden_imports(sources: Sources) -> list[str]:
    """Imports inside a function, by which a circle would be dodged."""

    def breach(function: Function) -> str:
        return ", ".join(ast.unparse(node) for node in ast.walk(function) if isinstance(node, Import))

    return breaches(sources, Function, breach)


def ownership_problems(sources: Sources) -> list[str]:
    return [
        f"{module} imports {target}; its owner is {' or '.join(OWNERS[package])}"
        for module in sources
        for target in imports(module, sources)
        if (package := target.split(".")[0]) in OWNERS and not any(within(module, owner) for owner in OWNERS[package])
    ]


def long_files(sources: Sources) -> list[str]:
    counts = {module: source.count("\n") for module, source in sources.items()}
    return [f"{module}: {lines} lines" for module, lines in counts.items() if lines > MAX_FILE_LINES]


def length(function: Function) -> int:
    """Lines of a function without its docstring, which is there for the reader."""
    assert function.end_lineno is not None
    docstring = ast.get_docstring(function, clean=False)
    documentation = 0 if docstring is None else docstring.count("\n") + 1
    return function.end_lineno - function.lineno + 1 - documentation


def rooms_above_their_ceilings(sources: Sources, ceilings: Mapping[str, int]) -> list[str]:
    """Folders with more lines than their ceiling, and folders without a ceiling."""
    lines: Counter[str] = Counter()
    for module, source in sources.items():
        path = module.split(".")
        folder = path[0] if len(path) == 1 or f"{path[0]}.{path[1]}" not in ceilings else f"{path[0]}.{path[1]}"
        lines[folder] += len(source.splitlines())
    high = {name: count for name, count in lines.items() if count > ceilings.get(name, 0)}
    return [f"{name}: {count} lines, at most {ceilings.get(name, 0)}" for name, count in high.items()]


def long_functions(sources: Sources) -> list[str]:
    return breaches(sources, Function, lambda f: f"{f.name} is long" if length(f) > MAX_FUNCTION_LINES else "")


def wide_signatures(sources: Sources) -> list[str]:
    """Functions with too many parameters; self does not count."""

    def breach(function: Function) -> str:
        arguments = function.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        return f"{function.name} has {count} parameters" if count > MAX_PARAMETERS else ""

    return breaches(sources, Function, breach)


def open_signatures(sources: Sources) -> list[str]:
    """Functions that take any keyword arguments. The keys of a TypedDict are listed, so `Unpack` of one is accepted."""

    def breach(function: Function) -> str:
        keywords = function.args.kwarg
        is_open = keywords and not ast.unparse(keywords.annotation or keywords).startswith("Unpack[")
        return f"{function.name} has **" if is_open else ""

    return breaches(sources, Function, breach)


def global_statements(sources: Sources) -> list[str]:
    return breaches(sources, ast.Global, ast.unparse)


def shared_type_names(sources: Sources) -> list[str]:
    """Public types that more than one module of mt and service defines."""
    definitions: dict[str, list[str]] = {}
    for module, source in sources.items():
        for node in ast.iter_child_nodes(nodes(source)[0]):
            match node:
                case ast.ClassDef(name=name):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp()) if re.search(
                    r"^[A-Z].*[a-z]", name
                ):
                    pass  # an alias of a type
                case _:
                    continue
            if not name.startswith("_"):
                definitions.setdefault(name, []).append(module)
    return [f"{name} is defined in {', '.join(modules)}" for name, modules in definitions.items() if len(modules) > 1]


def neighbours_named(sources: Sources) -> list[str]:
    """Modules that name a folder outside the repository."""
    return [module for module, source in sources.items() if "../shared" in source]


def asserts(node: ast.AST) -> bool:
    """Return whether a node is an assertion or calls a function that is named as one."""
    match node:
        case ast.Assert():
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in ("raises", "warns", "fail") or name.startswith(("expect", "assert_", "check_"))
    return False


def silent_tests(sources: Sources) -> list[str]:
    def breach(function: Function) -> str:
        is_silent = function.name.startswith("test_") and not any(map(asserts, ast.walk(function)))
        return f"{function.name} asserts nothing" if is_silent else ""

    return breaches(sources, Function, breach)


def unexpected_top_level(names: set[str]) -> list[str]:
    return sorted(name for name in names if name not in TOP_LEVEL and not name.startswith("."))


RULES = (
    floor_problems,
    circles,
    hidden_imports,
    ownership_problems,
    long_files,
    long_functions,
    wide_signatures,
    open_signatures,
    global_statements,
    shared_type_names,
    neighbours_named,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_law(rule: Callable[[Sources], list[str]], sources: Sources) -> None:
    assert rule(sources) == []


@pytest.mark.parametrize(
    ("rule", "bad"),
    [
        (floor_problems, {"mt.model.layers": "from mt.data import corpus", "mt.data.corpus": ""}),
        (floor_problems, {"mt.errors": "import mt.config"}),
        (floor_problems, {"mt.tokenizer": "from .evaluation import evaluate"}),
        (floor_problems, {"service.app": "import scripts.train"}),
        (floor_problems, {"mt.cli.translate": "import service.settings"}),
        (floor_problems, {"mt.cli.main": "from service.verbs import VERBS", "service.verbs": ""}),
        (floor_problems, {"mt.helpers": ""}),
        (circles, {"mt.a.b": "import mt.a.c", "mt.a.c": "from mt.a import d", "mt.a.d": "from . import b"}),
        (hidden_imports, {"mt.a": "def f():\n    import os"}),
        (hidden_imports, {"mt.a": "class A:\n    async def f(self):\n        from os import path"}),
        (ownership_problems, {"mt.data.dataset": "import sentencepiece as spm"}),
        (long_files, {"mt.a": "x = 1\n" * 451}),
        (long_functions, {"mt.a": "def f():\n" + "    x = 1\n" * 60}),
        (wide_signatures, {"mt.a": "def f(a, b, c, d, e, f, g, h): ..."}),
        (wide_signatures, {"mt.a": "def f(a, b, c, *, d, e, f, g, h): ..."}),
        (open_signatures, {"mt.a": "async def f(a, **kwargs): ..."}),
        (global_statements, {"mt.a": "def f():\n    global x\n    x = 1"}),
        (shared_type_names, {"mt.a": "Thing = list[int] | str", "service.b": "class Thing: ..."}),
        (neighbours_named, {"mt.a": "path = '../shared/data'"}),
        (silent_tests, {"tests.a": "def test_f():\n    if f() == 1:\n        check()"}),
    ],
)
def test_each_rule_can_be_broken(rule: Callable[[Sources], list[str]], bad: Sources) -> None:
    assert len(rule(bad)) == 1


def test_rooms_stay_below_their_ceilings() -> None:
    assert rooms_above_their_ceilings(read_sources("mt", "service"), CEILINGS) == []
    sources = {"mt.a.b": "x\ny", "mt.a.c": "x", "mt.d": "x", "other": "x"}
    assert rooms_above_their_ceilings(sources, {"mt.a": 3, "mt": 1}) == ["other: 1 lines, at most 0"]
    assert rooms_above_their_ceilings(sources, {"mt.a": 2, "mt": 1, "other": 1}) == ["mt.a: 3 lines, at most 2"]


def test_pytest_enters_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    folders = {part for path in (ROOT / "tests").rglob("test_*.py") for part in path.relative_to(ROOT).parts[:-1]}
    skipped = pytestconfig.getini("norecursedirs")
    assert [name for name in sorted(folders) if any(fnmatch(name, pattern) for pattern in skipped)] == []


def test_every_test_asserts_something() -> None:
    assert silent_tests(read_sources("tests")) == []


def test_top_level_is_that_of_the_design_card() -> None:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    assert unexpected_top_level({line.split("/")[0] for line in listing.stdout.splitlines()}) == []
