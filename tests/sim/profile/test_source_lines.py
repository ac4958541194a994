"""Lines of the kernel behind units and transfers, by what the lines say."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sim.profile.source_lines import SourceLines
from sim.profile.unit_graph import names_of
from sim.run.driver import compile_job
from sim.run.job import Job, Problem
from sw.kernels.flash_attention import flash_attention
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul
from sw.kernels.softmax import softmax
from tests.profiled_run import profiled
from tests.sw.kernels.test_golden_kernels import KERNELS


def _profile(kernel, **dims):
    return profiled(kernel, dims, backend="emulator")


@pytest.fixture(scope="module")
def attention():
    return _profile(flash_attention, H=1, G=1, M=16, S=16, D=16)


def _key(profile, words):
    """The line that has some words."""
    (found,) = (
        f"{number} {line}"
        for number, source in enumerate(profile["sources"])
        for line, text in enumerate(source["text"].splitlines(), source["first"])
        if text.strip().startswith(words)
    )
    return found


def _units(profile, words, kind="pcu"):
    key = _key(profile, words)
    return {
        unit["name"] for unit in profile["units"] if unit["kind"] == kind and key in unit["lines"]
    }


def _doing(profile, words):
    return {unit["name"] for unit in profile["units"] if any(words in x for x in unit["labels"])}


def _bytes(profile, words):
    key = _key(profile, words)
    return {each["tensor"]: each["bytes"] for each in profile["transfers"] if key in each["lines"]}


def test_each_product_of_attention_has_its_own_pcus(attention):
    scores, values = _doing(attention, "scores of a softmax"), _doing(attention, "values of a")
    assert scores and values and not scores & values
    for words in ("s = q @ k.T", "top = ", "p, fade = ", "l = l * fade"):
        assert _units(attention, words) == scores, words
    for words in ("o = o * fade", "return o / l"):
        assert _units(attention, words) == values, words
    for words in ("for j in", "m = top", "q = tw.load_tile"):
        assert not _units(attention, words), words


def test_buffers_and_ports_belong_to_the_lines_that_move_tensors(attention):
    for words, label in (("q = tw.load_tile", "queries0"), ("k, v = tw.load_tile", "keys0")):
        assert _units(attention, words, "pmu") >= _doing(attention, f"{label}: ") != set()
        assert _units(attention, words, "agcu") == {"agcu_0"}
    moved = {each["name"]: each["moved"] for each in attention["tensors"]}
    assert _bytes(attention, "k, v = tw.load_tile") == {"K": moved["K"], "V": moved["V"]}
    assert _bytes(attention, "tw.store_tile(O") == {"O": moved["O"]}


def test_one_lane_program_has_all_its_lines():
    profile = _profile(softmax, M=8, N=24)
    lanes = _doing(profile, "maximum of x")
    for words in ("m = tw.row_max", "e = tw.exp", "r = tw.row_sum", "tw.store_tile"):
        assert _units(profile, words) == lanes != set()
    assert not _units(profile, "x = tw.load_tile")


@pytest.mark.parametrize(
    ("kernel", "dims"),
    [(matmul, {"M": 24, "N": 20, "K": 16}), (linear_gelu, {"M": 8, "N": 16, "K": 16})],
    ids=["product", "several parts"],
)
def test_every_unit_in_use_and_every_byte_has_a_line(kernel, dims):
    profile = _profile(kernel, **dims)
    assert all(bool(unit["lines"]) == unit["used"] for unit in profile["units"])
    assert all(each["lines"] for each in profile["transfers"])
    for tensor in profile["tensors"]:
        own = [each for each in profile["transfers"] if each["tensor"] == tensor["name"]]
        assert sum(each["bytes"] for each in own) == tensor["moved"]
        assert {each["output"] for each in own} == {tensor["output"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_every_unit_and_transfer_of_every_kernel_has_a_line(name):
    kernel = KERNELS[name]
    dims = dict.fromkeys(kernel.signature.dims, 32) | dict(kernel.sizes)
    compiled, _ = compile_job(Job(Problem(kernel, named["small"], dims, bf16), "emulator"))
    lines = SourceLines(compiled)
    assert all(each["lines"] and each["bytes"] for each in lines.transfers())
    units = {unit for part in compiled.parts for unit in names_of(part).values()}
    assert all(lines.of_unit(unit) for unit in units)


def test_lines_of_a_text_that_cannot_be_read_are_left_out():
    text = """
import sw.language as tw
@tw.kernel("X[M, N] -> Y[M, N]")
def twice(X, Y):
    for i in tw.metapipe(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * 2)
"""
    names = {}
    exec(compile(text, "<nowhere>", "exec"), names)
    profile = _profile(names["twice"], M=8, N=16)
    assert profile["sources"] == []
    assert all(unit["lines"] == [] for unit in profile["units"])
