"""Tools of a back end: asked for before the work, and only for what has to be built."""

import pytest

from gen.design import Design
from hw.arch.config import named
from hw.arch.errors import MissingToolError
from sim.backends import choose, emitted
from sim.backends.choose import require_tools
from sim.backends.interface import Setup

SETUP = Setup(named["tiny"])


@pytest.fixture
def no_tools(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))


@pytest.mark.parametrize("backend", ["rtl", "cocotb"])
def test_a_model_that_has_to_be_built_needs_its_tools(backend, no_tools):
    with pytest.raises(MissingToolError, match="g\\+\\+ is not installed; fix: "):
        require_tools(backend, SETUP)


@pytest.mark.parametrize("backend", ["emulator", "golden"])
def test_a_back_end_without_a_model_needs_none(backend, no_tools):
    require_tools(backend, SETUP)


def test_a_chip_that_was_emitted_may_have_its_model(no_tools, monkeypatch):
    monkeypatch.setattr(emitted, "emit", lambda component: Design("top", "", {}))
    emitted.emitted_chip(SETUP.config)
    require_tools("rtl", SETUP)
    with pytest.raises(MissingToolError, match="g\\+\\+"):
        require_tools("rtl", Setup(SETUP.config, use_cache=False))
    require_tools("rtl", Setup(SETUP.config, design=Design("top", "", {})))


def test_cocotb_has_packages_of_its_own(monkeypatch):
    monkeypatch.setattr(choose, "_PACKAGES", {"cocotb": ("no-such-cocotb",)})
    with pytest.raises(MissingToolError, match="no-such-cocotb is not installed; fix: make setup"):
        require_tools("cocotb", SETUP)
