"""The kept Verilog is what would be emitted, and goes with a parameter or a source."""

import dataclasses

import pytest

from gen.design import Definition, Design, Port
from hw.arch.config import named
from sim.backends import emitted
from sim.backends.emitted import emitted_chip


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Configurations emitted; the emitting is faked."""
    configs = []

    def emit(chip):
        configs.append(chip)
        return Design(
            "tilewright",
            f"module {len(configs)}",
            {"tilewright": Definition({"i": Port(False, 3)}, {}, "Chip")},
        )

    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(emitted, "Chip", lambda config: config)
    monkeypatch.setattr(emitted, "emit", emit)
    return configs


def test_a_chip_is_emitted_once(asked):
    first = emitted_chip(named["tiny"])
    assert emitted_chip(named["tiny"]) == first and asked == [named["tiny"]]


def test_every_parameter_counts(asked):
    emitted_chip(named["tiny"])
    emitted_chip(dataclasses.replace(named["tiny"], token_tracks=3))
    assert len(asked) == 2


def test_a_source_or_a_tool_that_changes_counts(asked, monkeypatch):
    emitted_chip(named["tiny"])
    monkeypatch.setattr(emitted.metadata, "version", lambda name: "9")
    emitted_chip(named["tiny"])
    assert len(asked) == 2
    monkeypatch.setattr(emitted, "gen", emitted.hw)
    emitted_chip(named["tiny"])
    assert len(asked) == 3


def test_without_the_cache_it_is_emitted_anew_and_kept(asked):
    emitted_chip(named["tiny"])
    again = emitted_chip(named["tiny"], use_cache=False)
    assert again.text == "module 2" and emitted_chip(named["tiny"]) == again
