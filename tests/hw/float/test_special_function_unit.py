"""Special function unit: a function told with each argument, gates against numpy."""

import numpy as np
import pytest
from amaranth.hdl import Fragment
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.float.special_function_unit import SpecialFunctionUnit
from hw.numeric import functions
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction
from tests.hw.float.stimuli import arguments, table_borders

CODES = list(SpecialFunction)


def simulated(bits, words, codes):
    """Results of a unit that takes an argument and a code each cycle."""
    unit, found = SpecialFunctionUnit(bits), []

    async def bench(context):
        for cycle in range(len(words) + unit.latency):
            if cycle < len(words):
                context.set(unit.i_argument, int(words[cycle]))
                context.set(unit.i_operation, CODES[codes[cycle]])
            if cycle >= unit.latency:
                found.append(context.get(unit.o_result))
            await context.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return np.array(found, np.uint32)


def model(bits, words, codes):
    """The same in numpy."""
    x = fp32.from_bits(words)
    answers = [fp32.bits_of(functions.special_function(code, x, bits)) for code in CODES]
    return np.choose(codes, answers)


@pytest.mark.few(2)
@pytest.mark.parametrize("bits", [12, 16, 24])
def test_a_function_each_cycle(bits, seed):
    """Edges in every function, then random arguments and borders in random functions."""
    rng = np.random.default_rng(seed)
    edges = arguments(0, seed)
    near = [rng.choice(table_borders(code.name.lower(), bits), 60) for code in CODES]
    words = np.concatenate([np.tile(edges, 4), arguments(300, seed), *near])
    codes = rng.integers(0, 4, len(words))
    codes[: 4 * len(edges)] = np.repeat(np.arange(4), len(edges))
    assert simulated(bits, words, codes).tolist() == model(bits, words, codes).tolist()


def test_a_result_is_that_of_the_functions_alone(seed):
    x = fp32.from_bits(arguments(1000, seed))
    for code in CODES:
        alone = getattr(functions, code.name.lower())(x, 16)
        found = functions.special_function(code, x, 16)
        assert found.tobytes() == alone.tobytes()


@pytest.mark.parametrize("bits", [11, 25, 16.0, True])
def test_bits_are_refused(bits):
    message = f"^Function bits must be an integer from 12 to 24, not {bits!r}$"
    with pytest.raises(BadInputError, match=message):
        SpecialFunctionUnit(bits)
    with pytest.raises(BadInputError, match=message):
        functions.special_function(SpecialFunction.EXP, np.zeros(1, np.float32), bits)


def test_every_width_elaborates():
    for bits in range(12, 25):
        assert SpecialFunctionUnit.latency == 9
        Fragment.get(SpecialFunctionUnit(bits), None)
