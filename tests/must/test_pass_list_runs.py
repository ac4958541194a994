"""house-e: the pass list is the order of execution, and the text after each pass is pinned."""

import dataclasses

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.cli.app import main
from sw import compiler
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from sw.passes.steps import PASSES
from tests.sw.passes.texts import COMPILATIONS, FOLDER, text_of


@pytest.mark.must("house-e", goal="`tilewright list --passes` is the executed order")
def test_the_listed_passes_are_those_that_run(monkeypatch, capsys, figure):
    ran = []

    def recorded(each):
        def run(state):
            ran.append(each.name)
            return each.run(state)

        return dataclasses.replace(each, run=run)

    for passes in ("KERNEL_PASSES", "PART_PASSES"):
        monkeypatch.setattr(compiler, passes, tuple(map(recorded, getattr(compiler, passes))))
    compile_kernel(matmul, named["tiny"], dims={"M": 9, "N": 7, "K": 12}, dtype=bf16)
    assert main(["list", "--passes"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert ran == listed == [each.name for each in PASSES]
    figure(f"{len(ran)} passes: {' '.join(ran)}")


@pytest.mark.must("house-e", goal="text after each pass in files, of at least 4 programs")
@pytest.mark.parametrize("name", COMPILATIONS)
def test_the_text_after_each_pass_is_as_it_was(name, figure):
    assert text_of(name) == (FOLDER / f"{name}.txt").read_text()
    figure(f"{len(COMPILATIONS)} programs")
