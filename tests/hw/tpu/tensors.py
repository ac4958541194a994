"""Programs for the tests of tensor units: layers, and instructions drawn at random."""

import numpy as np

from hw.arch.tensor_instructions import Instruction, Opcode
from hw.numeric import elementwise, reference
from hw.numeric.formats import fp32, int8
from sw.tensor_program import Layer, Program

__all__ = ["expected", "layers", "operands", "random_program"]


def operands(rng, shape, fmt):
    """Random finite operands."""
    if fmt == int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.standard_normal(shape).astype(fmt.dtype)


def _fp32_bits(value):
    return int(np.float32(value).view(np.uint32))


def layers(rng, config, extents):
    """Layers of these extents, with whatever the unit's results pass."""
    found = []
    for index, (k, n) in enumerate(zip(extents[:-1], extents[1:], strict=True)):
        options = {"relu": index < len(extents) - 2}
        if config.format == int8:
            options |= {"scale": int(rng.integers(1, 1 << 16)), "shift": int(rng.integers(20, 26))}
            bias = rng.integers(-5000, 5000, n, np.int32)
        else:
            bias = rng.standard_normal(n, np.float32)
            if config.unit.bias:
                options["scale"] = _fp32_bits(rng.uniform(0.1, 0.5))
        if config.unit.bias:
            options["bias"] = bias
        found.append(Layer(operands(rng, (k, n), config.format), **options))
    return found


def expected(config, activations, chain):
    """Results of layers, with no thought of vectors but where an adder joins the sums of each."""
    tile = config.sizes.elements if config.unit.bottom else None
    for layer in chain:
        sums = reference.matmul(activations, layer.weight, tile=tile)
        if config.format == int8:
            total = sums.astype(np.int64) + (0 if layer.bias is None else layer.bias)
            whole, rest = np.divmod(total * layer.scale, 1 << layer.shift)
            twice = 2 * rest
            up = (twice > 1 << layer.shift) | ((twice == 1 << layer.shift) & (whole & 1 == 1))
            activations = (whole + up).clip(0 if layer.relu else -128, 127).astype(np.int8)
        else:
            if layer.bias is not None:
                scale = fp32.from_bits(np.array(layer.scale))
                sums = elementwise.fma(sums, scale, layer.bias) + np.float32(0)
            sums = np.where(sums < 0, np.float32(0), sums) if layer.relu else sums
            activations = reference.cast(sums, config.format)
    return activations


def _place(rng, config, rows, *, parts=1, apart_from=None):
    """First of so many vectors, which may lie anywhere but in a range."""
    while True:
        address = int(rng.integers(0, config.buffer_rows - rows * parts + 1))
        stop = address + rows * parts
        if apart_from is None or stop <= apart_from.start or apart_from.stop <= address:
            return address


def _pass(rng, config, near):
    """Multiplies that accumulate, and the activate of their results."""
    count, rows = int(rng.integers(1, 4)), int(rng.integers(1, near))
    made = []
    for index in range(count):
        address = _place(rng, config, rows)
        made.append(
            Instruction(
                Opcode.MULTIPLY,
                address,
                rows,
                accumulate=index > 0,
                finish=index == count - 1,
            )
        )
    source = range(address, address + rows)
    target = _place(rng, config, rows, parts=config.sizes.parts, apart_from=source)
    slot = int(rng.integers(config.sizes.slots))
    return [*made, Instruction(Opcode.ACTIVATE, target, rows, slot=slot)]


def _configure(rng, config):
    if config.format == int8:
        scale, shift = int(rng.integers(1, 1 << 16)), int(rng.integers(16, 26))
    else:
        scale, shift = _fp32_bits(rng.uniform(-0.3, 0.3)), 0
    return Instruction(Opcode.CONFIGURE, relu=bool(rng.integers(2)), scale=scale, shift=shift)


def random_program(rng, config, count):
    """A program whose commands meet in the buffer; the host gives all of it and takes it back."""
    every = config.buffer_rows
    made = [Instruction(Opcode.READ_HOST, 0, every)]
    for _ in range(count):
        kind = rng.random()
        rows = int(rng.integers(1, 16))
        if kind < 0.2:
            made.append(Instruction(Opcode.READ_HOST, _place(rng, config, rows), rows))
        elif kind < 0.4:
            made.append(Instruction(Opcode.WRITE_HOST, _place(rng, config, rows), rows))
        elif kind < 0.45:
            # Sums that nobody finishes.
            made.append(Instruction(Opcode.MULTIPLY, _place(rng, config, rows), rows))
        elif kind < 0.55:
            made.append(_configure(rng, config))
        else:
            made += _pass(rng, config, 16)
    made.append(Instruction(Opcode.WRITE_HOST, 0, every))
    vectors = sum(each.rows for each in made if each.opcode == Opcode.READ_HOST)
    tiles = sum(each.opcode == Opcode.MULTIPLY for each in made)
    finishes = sum(each.opcode == Opcode.ACTIVATE for each in made)
    array = config.unit.array
    lanes = config.sizes.elements // array.rows
    biases = rng.integers(-1000, 1000, (finishes, array.columns), np.int32)
    if config.format != int8:
        biases = biases.astype(np.float32) / 1000
    return Program(
        tuple(made),
        operands(rng, (vectors, config.sizes.elements), config.format),
        operands(rng, (tiles, array.rows, array.columns, lanes), config.format),
        biases if config.unit.bias else None,
    )
