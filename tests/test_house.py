"""The rules of the house: what may import what, and what no file may hold."""

import ast
import functools
import graphlib
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hw", "gen", "sim", "sw", "tilewright")
OURS = {*PACKAGES, "tests", "examples", "benchmarks", "docs"}
LONGEST = 400
SKIPPED = {"build", "dist", "__pycache__"}
TEXT = {".py", ".md", ".toml", ".txt", ".sh", ".yml", ".yaml", ".json", ".cpp", ".h", ".v", ".vlt"}

#: Modules of ours that a package may import, by prefix. A package is always free to use itself.
ALLOWED = {
    "hw": (),
    "gen": ("hw",),
    # The compiler knows the machine by its contract and its numbers alone: no component.
    "sw": ("hw.arch", "hw.numeric"),
    "sim": ("hw", "gen", "sw"),
    "examples": ("tilewright", "hw", "gen"),
    "benchmarks": ("hw", "gen", "sim", "sw"),
    "docs": ("tilewright", "hw", "gen", "sim", "sw"),
    "tests": tuple(OURS),
    "tilewright": ("hw", "gen", "sim", "sw"),
}


def files(root: Path) -> Iterator[Path]:
    """Every file of the project as a path below `root`, but what is made or belongs to tools."""
    for path in sorted(root.iterdir()):
        hidden = path.name.startswith(".") and path.name not in (".ci", ".gitignore")
        if path.name in SKIPPED or hidden:
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def python_files(root: Path) -> list[Path]:
    return [path for path in files(root) if path.suffix == ".py"]


def top(root: Path, path: Path) -> str:
    """Package, or module at the top, that a file belongs to."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def imported(root: Path, path: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of each module of ours that a file imports, by whatever spelling."""
    return _imported(root, path, path.read_text(encoding="utf-8"))


@functools.cache
def _imported(root: Path, path: Path, text: str) -> tuple[tuple[int, str], ...]:
    return tuple(_imports(root, path, text))


def _imports(root: Path, path: Path, text: str) -> Iterator[tuple[int, str]]:
    parts = path.relative_to(root).with_suffix("").parts
    package = parts[:-1]
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            # `from hw import words` imports hw.words; `from hw import __version__` imports hw.
            for alias in node.names:
                inner = root.joinpath(*base.split("."), alias.name)
                module = inner.with_suffix(".py").exists() or inner.is_dir()
                names.append(f"{base}.{alias.name}" if module else base)
        elif isinstance(node, ast.Call) and node.args:
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if function in ("import_module", "__import__", "find_spec") and isinstance(
                first, ast.Constant
            ):
                names = [str(first.value)]
        for name in names:
            if name.partition(".")[0] in OURS:
                yield node.lineno, name


def forbidden_imports(root: Path) -> Iterator[str]:
    for path in python_files(root):
        home = top(root, path)
        allowed = (home, *ALLOWED.get(home, ()))
        for line, name in imported(root, path):
            # The bare package `hw` is its version and nothing else.
            fits = any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)
            if not fits and name != "hw":
                yield f"{path.relative_to(root)}:{line}: {home} must not import {name}"
            # What runs a kernel serves Python and the command line, and knows neither.
            if home == "sim" and "cli" not in path.parts and name.startswith("sim.cli"):
                yield f"{path.relative_to(root)}:{line}: only sim.cli may import {name}"


#: Packages of hw without a component: what each may import of ours, and of Amaranth.
CONTRACT = {
    "hw/arch": (
        ("hw.arch", "hw.numeric"),
        (
            "amaranth.hdl.Shape",
            "amaranth.hdl.signed",
            "amaranth.hdl.unsigned",
            "amaranth.lib.data",
            "amaranth.lib.enum",
            "amaranth.utils.bits_for",
        ),
    ),
    "hw/numeric": (("hw.arch", "hw.numeric"), ()),
}


def components_in_the_contract(root: Path) -> Iterator[str]:
    for folder, (ours, amaranth) in CONTRACT.items():
        for path in python_files(root / folder) if (root / folder).is_dir() else ():
            for line, name in imported(root, path):
                if not any(f"{name}.".startswith(f"{prefix}.") for prefix in ours):
                    yield f"{path.relative_to(root)}:{line}: {folder} must not import {name}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                else:
                    continue
                for name in names:
                    if name.partition(".")[0] == "amaranth" and name not in amaranth:
                        where = f"{path.relative_to(root)}:{node.lineno}"
                        yield f"{where}: {folder} must not import {name}"


def import_cycles(root: Path) -> Iterator[str]:
    """Modules that import one another when they are imported, not only when they are called."""
    graph: dict[str, set[str]] = {}
    for path in python_files(root):
        if top(root, path) not in PACKAGES:
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        lines = {node.lineno for node in body if isinstance(node, ast.Import | ast.ImportFrom)}
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[module] = {name for line, name in imported(root, path) if line in lines}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield f"modules must not import one another: {' -> '.join(error.args[1])}"


def missing_all(root: Path) -> Iterator[str]:
    for path in python_files(root):
        if top(root, path) not in PACKAGES:
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        only_docstring = len(body) == 1 and isinstance(body[0], ast.Expr)
        targets = [
            target.id
            for node in body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ]
        if "__all__" not in targets and not (path.name == "__init__.py" and only_docstring):
            yield f"{path.relative_to(root)}: __all__ must be there"


def long_files(root: Path) -> Iterator[str]:
    for path in python_files(root):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST:
            yield f"{path.relative_to(root)}: a file must have at most {LONGEST} lines, not {lines}"


# Spelled in two halves, or this file would break its own rules.
_SILENCED = re.compile("no" + r"qa|type:\s*ig" + r"nore|pragma:\s*no", re.IGNORECASE)
_UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
_HOME = re.compile(r"(?<![\w.])/(home|root|Users|work)/\w")
_REGISTRY = re.compile(r"pypi\.org|pythonhosted\.org|registry\.npmjs|anaconda\.org|proxy\.golang")


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def silenced_tools(root: Path) -> Iterator[str]:
    for path in python_files(root):
        source = path.read_text(encoding="utf-8")
        # What no line has, no comment has.
        for line, text in comments(source) if _SILENCED.search(source) else ():
            if _SILENCED.search(text):
                yield f"{path.relative_to(root)}:{line}: a tool must not be silenced: {text}"


def unfinished(root: Path) -> Iterator[str]:
    for path in files(root):
        if path.suffix in TEXT or path.name in ("Makefile", "run"):
            for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if _UNFINISHED.search(text):
                    yield f"{path.relative_to(root)}:{line}: work left must be an issue: {text}"


def places(root: Path) -> Iterator[str]:
    """Folders of one machine, and addresses of package registries."""
    for path in files(root):
        if path.suffix not in TEXT and path.name not in ("Makefile", "run"):
            continue
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _HOME.search(text) or _REGISTRY.search(text):
                yield f"{path.relative_to(root)}:{line}: a path or address of one machine: {text}"


def must_show_headlines(root: Path) -> Iterator[str]:
    """A file of tests/must has the id that it shows in its headline; its name says what that is."""
    for path in (root / "tests" / "must").glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        first = (ast.get_docstring(ast.parse(text)) or "").partition(":")[0].partition(",")[0]
        shown = set(re.findall(r'must\(\s*"([a-z]+-[a-z])"', text)) or {first}
        if shown != {first} or not re.fullmatch(r"[a-z]+-[a-z]", first):
            yield f"{path.relative_to(root)}: the headline must begin with the id that it shows"


def shape_of_packages(root: Path) -> Iterator[str]:
    """What packaging needs: typed packages with a docstring, and no package below tests/."""
    for package in PACKAGES:
        if not (root / package / "py.typed").is_file():
            yield f"{package}/py.typed must be there"
    for path in python_files(root):
        home = top(root, path)
        folder = path.parent
        if home in PACKAGES and not (folder / "__init__.py").is_file():
            yield f"{folder.relative_to(root)}/__init__.py must be there"
        if home == "tests" and path.name == "__init__.py":
            # It would hide the package of the same name from the tests.
            yield f"{path.relative_to(root)} must not be there"
        if home in PACKAGES and not ast.get_docstring(ast.parse(path.read_text("utf-8"))):
            yield f"{path.relative_to(root)}: a docstring must be there"


def other_refusals(root: Path) -> Iterator[str]:
    """A bad parameter has one class of error, which users can catch by one name."""
    for path in python_files(root):
        if top(root, path) not in PACKAGES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                if ast.unparse(node.exc.func) == "TypeError":
                    where = f"{path.relative_to(root)}:{node.lineno}"
                    yield f"{where}: a refusal must be a BadInputError"
            elif isinstance(node, ast.ClassDef) and top(root, path) == "hw":
                if "wiring.Component" in map(ast.unparse, node.bases) and path.stem != "component":
                    where = f"{path.relative_to(root)}:{node.lineno}"
                    yield f"{where}: a component must be a hw.lib.component.Component"


RULES = [
    forbidden_imports,
    missing_all,
    long_files,
    silenced_tools,
    unfinished,
    places,
    other_refusals,
    must_show_headlines,
    shape_of_packages,
    components_in_the_contract,
    import_cycles,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_every_rule(rule):
    assert list(rule(ROOT)) == []


def test_the_rules_see_the_project():
    seen = {top(ROOT, path) for path in python_files(ROOT)}
    assert seen >= {*PACKAGES, "tests"}
    assert any(True for path in python_files(ROOT) for _ in imported(ROOT, path))


#: A rule, a file that breaks it, its text, and what the complaint must say.
BROKEN = [
    (forbidden_imports, "hw/a.py", "import sw.ir", "hw must not import sw.ir"),
    (forbidden_imports, "hw/a.py", "from gen import verilog", "hw must not import gen"),
    (forbidden_imports, "hw/a.py", "def f():\n    import sim", "a.py:2: hw must not import sim"),
    (forbidden_imports, "hw/pmu/a.py", "from ...sw import ir", "hw must not import sw"),
    (forbidden_imports, "gen/a.py", "import sim.rtl", "gen must not import sim.rtl"),
    (forbidden_imports, "gen/a.py", "from sw import image", "gen must not import sw"),
    (forbidden_imports, "sw/a.py", "from hw.lib import stream", "sw must not import hw.lib.stream"),
    (forbidden_imports, "sw/a.py", "from hw.pmu.unit import Pmu", "must not import hw.pmu.unit"),
    (forbidden_imports, "sw/a.py", "import hw.configuration", "must not import hw.configuration"),
    (forbidden_imports, "sw/a.py", "import gen", "sw must not import gen"),
    (forbidden_imports, "sw/a.py", "f = import_module('sim.rtl')", "must not import sim.rtl"),
    (forbidden_imports, "sim/a.py", "import tilewright as tw", "sim must not import tilewright"),
    (forbidden_imports, "sim/run/a.py", "from sim.cli import b", "only sim.cli may import"),
    (forbidden_imports, "benchmarks/a.py", "import tilewright", "must not import tilewright"),
    (forbidden_imports, "examples/a.py", "from sw import ir", "examples must not import sw"),
    (must_show_headlines, "tests/must/test_a.py", '"""A."""', "must begin with the id"),
    (must_show_headlines, "tests/must/test_a.py", '"""x-a: A."""\n# must("x-b")', "with the id"),
    (missing_all, "hw/a.py", "x = 1", "hw/a.py: __all__ must be there"),
    (missing_all, "sw/ir/__init__.py", '"""Doc."""\nx = 1', "__all__ must be there"),
    (long_files, "tests/a.py", "x = 1\n" * (LONGEST + 1), "not 401"),
    (silenced_tools, "tests/a.py", "import os  # no" + "qa: F401", "tests/a.py:1"),
    (silenced_tools, "hw/a.py", "x: int = ''  # type: ig" + "nore", "hw/a.py:1"),
    (unfinished, "hw/a.py", "# TO" + "DO: finish", "hw/a.py:1"),
    (unfinished, "Makefile", "# FIX" + "ME", "Makefile:1"),
    (places, "docs/a.md", "see /ho" + "me/someone/notes", "docs/a.md:1"),
    (places, "sim/a.py", "P = '/wo" + "rk/main'", "sim/a.py:1"),
    (places, "requirements.txt", "numpy @ https://files.python" + "hosted.org/x", "a path or"),
    (other_refusals, "sw/a.py", "raise TypeError('x')", "a refusal must be a BadInputError"),
    (other_refusals, "hw/a.py", "class A(wiring.Component): ...", "must be a hw.lib.component"),
    (
        components_in_the_contract,
        "hw/arch/a.py",
        "from hw.lib import stream",
        "hw/arch must not import hw.lib.stream",
    ),
    (
        components_in_the_contract,
        "hw/arch/a.py",
        "from amaranth.hdl import Module",
        "hw/arch must not import amaranth.hdl.Module",
    ),
    (
        components_in_the_contract,
        "hw/numeric/a.py",
        "import amaranth",
        "hw/numeric must not import amaranth",
    ),
    (import_cycles, "hw/lib/a.py", "from hw.lib import a", "must not import one another"),
    (shape_of_packages, "tests/hw/__init__.py", "", "must not be there"),
    (shape_of_packages, "hw/noc/a.py", '"""A."""', "hw/noc/__init__.py must be there"),
    (shape_of_packages, "hw/a.py", "x = 1", "a docstring must be there"),
]

#: Files that look close to breaking a rule and do not.
SOUND = [
    ("hw/pmu/a.py", "from ..lib.stream import x\nfrom hw.words import y\nimport numpy"),
    (
        "sw/a.py",
        "import hw.arch.image\nfrom hw import __version__\nfrom hw.numeric.formats import f",
    ),
    ("sw/a.py", "from . import ir\nfrom .ir import nodes\nfrom sw.ir.nodes import Node"),
    ("sim/a.py", "import hw, gen.verilog\nfrom sw import image\nimport simpy"),
    ("examples/a.py", "import tilewright as tw\nfrom tilewright import metapipe"),
]


def plant(root: Path, name: str, text: str) -> None:
    """A small sound project with one more file."""
    for module in (
        "hw/lib/stream.py",
        "hw/words.py",
        "hw/arch/errors.py",
        "sw/ir/nodes.py",
        "gen/verilog.py",
    ):
        (root / module).parent.mkdir(parents=True, exist_ok=True)
        (root / module).write_text('"""A module."""\n__all__: list[str] = []\n')
    for package in (*PACKAGES, "sw/ir", "hw/matrix", "hw/arch", "hw/lib"):
        (root / package).mkdir(parents=True, exist_ok=True)
        (root / package / "__init__.py").write_text('"""A package."""\n')
        (root / package / "py.typed").touch()
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.mark.parametrize(("rule", "name", "text", "complaint"), BROKEN)
def test_a_planted_file_breaks_its_rule(rule, name, text, complaint, tmp_path):
    plant(tmp_path, name, text)
    found = list(rule(tmp_path))
    assert len(found) == 1 and complaint in found[0], found


@pytest.mark.parametrize(("name", "text"), SOUND)
def test_a_sound_file_breaks_none(name, text, tmp_path):
    plant(tmp_path, name, text)
    assert list(forbidden_imports(tmp_path)) == []


def test_a_package_without_its_type_marker_is_named(tmp_path):
    plant(tmp_path, "hw/b.py", '"""B."""')
    (tmp_path / "sw" / "py.typed").unlink()
    assert list(shape_of_packages(tmp_path)) == ["sw/py.typed must be there"]
