"""The package that a user imports: its names, their types, and how little its import costs."""

import ast
import json
import rlcompleter
import subprocess
import sys
from pathlib import Path

import pytest

import sw.language
import tilewright as tw

ROOT = Path(__file__).resolve().parent.parent


def imports_for_types():
    """Names that the package imports for type checkers alone."""
    tree = ast.parse((ROOT / "tilewright" / "__init__.py").read_text())
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and "TYPE" in ast.unparse(node.test)
    )
    return {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_package_has_every_name_of_the_language_and_no_other_of_it():
    found = imports_for_types()
    language = {name for name, module in found.items() if module == "sw.language"}
    assert language == set(sw.language.__all__)
    assert set(found) < set(tw.__all__) and len(tw.__all__) == len(set(tw.__all__))
    for name, module in found.items():
        home = sys.modules.get(module) or __import__(module, fromlist=[name])
        assert getattr(tw, name) is getattr(home, name), name


def test_every_name_completes():
    assert dir(tw) == sorted(tw.__all__)
    complete = rlcompleter.Completer({"tw": tw}).complete
    offered = set()
    while (text := complete("tw.", len(offered))) is not None:
        offered.add(text.removeprefix("tw.").rstrip("()"))
    assert offered >= set(sw.language.__all__)


def test_a_name_that_is_none_brings_the_nearest():
    with pytest.raises(
        AttributeError, match="tilewright has no `lod_tile`; did you mean 'load_tile'"
    ):
        _ = tw.lod_tile
    assert not hasattr(tw, "__wrapped__")


def test_importing_the_package_imports_no_language_and_no_numpy():
    code = "import json, sys, tilewright; print(json.dumps(list(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert not {"numpy", "amaranth", "sw.language", "sim"} & set(json.loads(said.stdout))
