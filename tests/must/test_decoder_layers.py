"""attn-i: layers of a tiny Llama, token by token, each token one launch."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.launch import ARGUMENT_BYTES, alignment_bytes
from sim.golden import Interpreter, golden
from sim.launch_memory import LaunchMemory
from sim.run.job import Problem
from sw.ir import nodes as ir
from sw.ir.sizes import choose_sizes
from sw.passes.accumulate import accumulate
from sw.passes.check import check
from tests.sim.run.test_token_by_token import LLAMA, by_layer, defined, model, tokens

TOKENS, LAYERS = 16, 2


class _Unfused(Interpreter):
    """Bytes that operations move if each is a program of its own: operands in, results out.

    Loads and stores are then those of the operations beside them. Constants are not read.
    """

    bytes = 0

    def results(self, node):
        found = super().results(node)
        if not isinstance(node, ir.Load | ir.Store | ir.Full | ir.Iota):
            taken = [self.values[each.name] for each in node.values]
            self.bytes += sum(each.nbytes for each in (*taken, *found))
        return found


def unfused_bytes(inputs, sizes, past):
    """Bytes of a token if each operation passes its values through memory, all keys at once."""
    program = model.trace(**sizes, dtype=tw.bf16, past=past)
    program = choose_sizes(accumulate(check(program)), default=sizes["S"])
    memory = {name: array.copy() for name, array in inputs.items()}
    for tensor in program.tensors:
        memory.setdefault(tensor.name, np.zeros(tensor.type.shape, tensor.type.format.dtype))
    interpreter = _Unfused(memory)
    with np.errstate(all="ignore"):
        interpreter.run(program.nodes)
    outputs = golden(program, inputs)
    assert all(memory[name].tobytes() == each.tobytes() for name, each in outputs.items())
    return interpreter.bytes


def launch_bytes(sizes, past):
    """Bytes of the launch list of a token, its argument tables and the images of all entries."""
    options = {"past": past}
    compiled = Problem(model, named["small"], sizes, tw.bf16, None, options).compile()
    entries = LaunchMemory.of_kernel(compiled, seed=1).list_entries
    own = sum(each.image_bytes + each.argument_count * ARGUMENT_BYTES for each in entries)
    return own + len(entries) * alignment_bytes(named["small"].width_bits)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.must(
    "attn-i",
    goal="two decoder layers, 16 tokens: RTL = emulator = golden, 1 launch a token, bytes reported",
)
def test_sixteen_tokens_take_a_launch_each(seed, heavy, figure):
    sizes = LLAMA | {"S": TOKENS}
    program = model.compile("small", **sizes, L=LAYERS, dtype=tw.bf16)
    moved, unfused = [], []

    def step(past, inputs):
        compiled = program.with_options(past=past)
        runs = [compiled.run(*inputs.values(), backend=name) for name in ("rtl", "emulator")]
        for run in runs:
            assert run.verified, (past, run.problems)
            assert run.json()["launches"] == 1
        rtl, emulated = runs
        for name in ("Y", "Kc", "Vc"):
            assert getattr(rtl, name).tobytes() == getattr(emulated, name).tobytes()
        moved.append(rtl.json()["dram_bytes_read"] + rtl.json()["dram_bytes_written"])
        unfused.append(unfused_bytes(inputs, sizes | {"L": LAYERS}, past))
        return rtl.Kc, rtl.Vc, rtl.Y

    found = tokens(step, np.random.default_rng(seed), sizes, TOKENS, LAYERS)
    wanted = by_layer(defined("small"))
    wanted = tokens(wanted, np.random.default_rng(seed), sizes, TOKENS, LAYERS)
    assert found[0] == wanted[0]
    for one, other in zip(found[1], wanted[1], strict=True):
        assert one.tobytes() == other.tobytes()
    launched = launch_bytes(sizes | {"L": LAYERS}, TOKENS - 1)
    arrays = moved[-1] - launched
    figure(
        f"1 launch a token; token {TOKENS}: {arrays:,} bytes of arrays, {unfused[-1]:,} if each "
        f"operation were a program, {arrays / unfused[-1]:.3f}; {launched:,} bytes of the launch"
    )
    assert 0 < arrays < unfused[-1]
