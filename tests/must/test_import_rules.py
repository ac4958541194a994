"""house-b: the compiler knows two packages of hw, none of which has a component; no cycles."""

from pathlib import Path

import pytest

from tests.test_house import (
    ALLOWED,
    CONTRACT,
    components_in_the_contract,
    forbidden_imports,
    import_cycles,
    python_files,
)

# The same rules are tests of tests/test_house.py in `make test`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.must("house-b", goal="sw imports hw.arch and hw.numeric alone; no component in them")
def test_the_compiler_knows_two_packages_of_hw(figure):
    assert ALLOWED["sw"] == ("hw.arch", "hw.numeric")
    assert list(forbidden_imports(ROOT)) == []
    assert list(components_in_the_contract(ROOT)) == []
    modules = sum(len(python_files(ROOT / folder)) for folder in CONTRACT)
    figure(f"{modules} modules of the contract and of numerics, without a component")


@pytest.mark.must("house-b", goal="no import cycle")
def test_no_modules_import_one_another(figure):
    assert list(import_cycles(ROOT)) == []
    figure("none")
