"""Verilog out of a file: the chip in it is the one that was emitted."""

import dataclasses

import pytest

from hw.arch.config import named
from sim.backends.emitted import emitted_chip
from sim.run.verilog_file import read_design


def test_an_emitted_chip_reads_back_as_itself(tmp_path):
    design = emitted_chip(named["tiny"])
    path = tmp_path / "tiny.v"
    path.write_text(design.file)
    assert read_design(path) == design
    path.write_text(design.text)
    assert read_design(path) == dataclasses.replace(design, head="")


@pytest.mark.parametrize("text", ["", "module other (a);\n  input a;\nendmodule\n"])
def test_a_file_without_a_chip_is_refused(text, tmp_path):
    path = tmp_path / "other.v"
    path.write_text(text)
    with pytest.raises(ValueError, match="other.v must have a module tilewright"):
        read_design(path)
