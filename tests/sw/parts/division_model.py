"""Runs a division as a launch list does, part by part in byte memory, with golden as the chip."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from sim.golden import golden
from sw.ir.sizes import choose_sizes
from sw.ir.types import Role
from sw.parts.part import in_order

__all__ = ["run_division"]

_FILL = 0xA5


def _view(memory, argument, spec, iteration):
    """The elements of a part's array in memory; segments are axes of their own."""
    begin = argument.offset + iteration * argument.stride
    assert begin % 16 == 0 and begin >= 0
    size = spec.format.bits // 8
    if spec.segments is not None:
        return _segmented(memory, begin, spec)
    strides = [size]
    for number, extent in enumerate(reversed(spec.shape[1:])):
        strides.append(spec.pitch if number == 0 else strides[-1] * extent)
    end = begin + sum(step * (n - 1) for step, n in zip(reversed(strides), spec.shape)) + size
    assert end <= memory.nbytes, f"{spec.name} reaches byte {end} of {memory.nbytes}"
    words = np.ndarray((), spec.format.dtype, memory, begin)
    return as_strided(words, spec.shape, tuple(reversed(strides)))


def _segmented(memory, begin, spec):
    """The elements of a matrix one of whose axes lies in memory in segments."""
    steps, axis = (spec.pitch, spec.format.bits // 8), spec.segments.axis
    counts, strides = zip(*spec.segments.loops)
    inner = spec.shape[axis] // spec.segments.count
    shape = (*spec.shape[:axis], *counts, inner, *spec.shape[axis + 1 :])
    strides = (*steps[:axis], *strides, *steps[axis:])
    end = begin + sum(step * (n - 1) for step, n in zip(strides, shape)) + steps[1]
    assert end == begin + spec.reach and end <= memory.nbytes, spec
    words = np.ndarray((), spec.format.dtype, memory, begin)
    return as_strided(words, shape, strides)


def run_division(division, arrays, inputs, *, sizes=None, default=None):
    """Outputs of a division.

    Parameters
    ----------
    division : Division
    arrays : tuple of ArraySpec
        The arguments of the kernel.
    inputs : mapping of str to array
    sizes : mapping of str to int
        Block size of each loop.
    default : int
        That of other loops.
    """
    specs = {each.name: each for each in (*arrays, *division.intermediates)}
    memory = {name: np.full(each.bytes, _FILL, np.uint8) for name, each in specs.items()}
    whole = {name: _whole(memory[name], each) for name, each in specs.items()}
    for name, array in inputs.items():
        whole[name][...] = array
    for number, launch in in_order(part.launches for part in division.parts):
        part = division.parts[number]
        program = choose_sizes(part.program, sizes, default=default)
        tensors = {each.name: each.type.role for each in program.tensors}
        for iteration in range(launch.repeat):
            views = {
                spec.name: _view(memory[argument.array], argument, spec, iteration)
                for argument, spec in zip(launch.arguments, part.arrays, strict=True)
            }
            given = {
                spec.name: views[spec.name].reshape(spec.shape).copy()
                for spec in part.arrays
                if tensors[spec.name] is not Role.OUT
            }
            for name, array in golden(program, given).items():
                views[name][...] = array.reshape(views[name].shape)
    return {each.name: whole[each.name].copy() for each in arrays if each.output}


def _whole(memory, spec):
    steps = [spec.format.bits // 8, spec.pitch]
    for extent in reversed(spec.shape[1:-1]):
        steps.append(steps[-1] * extent)
    strides = tuple(reversed(steps[: len(spec.shape)]))
    return as_strided(np.ndarray((), spec.format.dtype, memory), spec.shape, strides)
