"""Faults of the compiler to be planted: those before golden's form, and those behind it.

What is before golden's form (the passes down to `online`) changes golden, too, so that the
definition alone finds it. Waits and slots are made behind it alone.
"""

import dataclasses
from collections import Counter

import sw.language as tw
from hw.arch.words.pmu_word import Access
from sw.ir import nodes as ir
from sw.ir.affine import Axis, size_symbol
from sw.ir.rewrite import Names, used
from sw.language import tile_operations, tile_value
from sw.language.index import BlockIndex
from sw.parts import division_search
from sw.passes import fit, kernel_steps
from sw.stages import operand_walks, product_graph

__all__ = ["FAULTS"]


def _square(tile):
    return isinstance(tile.rows, int) and tile.rows == tile.cols


def strides_of_a_load(patch):
    """Rows and columns of a square matrix."""
    made = tw.load_tile

    def loaded(view):
        tile = made(view)
        return tile.T if _square(tile) and tile.rows > 1 else tile

    patch.setattr(tw, "load_tile", loaded)


def strides_of_a_walk(patch):
    """The strides of two loops over a buffer."""
    made = operand_walks.nest

    def swapped(*loops):
        if len(loops) < 2:
            return made(*loops)
        (first, one), (second, other), *rest = loops
        return made((first, other), (second, one), *rest)

    patch.setattr(operand_walks, "nest", swapped)


def orientation_of_a_tile(patch):
    """The transpose of a square matrix is the matrix."""
    made = tile_value.emit

    def emitted(kind, *operands, **fields):
        if kind is ir.Transpose and _square(operands[0]):
            return operands[0]
        return made(kind, *operands, **fields)

    patch.setattr(tile_value, "emit", emitted)


def orientation_of_an_operand(patch):
    """What lies across the sum is read by rows."""
    patch.setattr(product_graph, "access_of", lambda slot: Access.ROW)


def tail_of_a_block(patch):
    """Blocks are whole beyond the end of a tensor."""
    patch.setattr(BlockIndex, "axis", property(lambda self: Axis(size_symbol(self.traced_name))))


def tail_of_an_operand(patch):
    """A load goes on one element beyond the end of a tensor, in columns and rows."""
    made = product_graph.segmented_boxes

    def longer(*given):
        descriptor, number, loops = made(*given)
        dims = tuple(each + 1 for each in descriptor.dims)
        return dataclasses.replace(descriptor, dims=dims), number, loops

    patch.setattr(product_graph, "segmented_boxes", longer)


def _reassociated(program, name):
    """The program with x + (y + z) in the place of (x + y) + z."""
    uses = Counter(value.name for node in program.nodes for value in used(node))
    names = Names(program)

    def is_sum(node):
        if not isinstance(node, ir.Map) or node.op != "add" or len(node.values) != 2:
            return False
        tiles = (*node.values, node.result)
        return len({(each.type.rows, each.type.cols) for each in tiles}) == 1

    def block(nodes):
        sums, found = {}, []
        for node in nodes:
            if node.body:
                node = node.replace(nodes=block(node.body))
            if is_sum(node):
                left, z = node.values
                if left.name in sums and uses[left.name] == 1:
                    x, y = sums[left.name].values
                    inner = names.fresh(left)
                    found.append(node.replace(operands=(y, z), results=(inner,)))
                    node = node.replace(operands=(x, inner))
                sums[node.result.name] = node
            found.append(node)
        return tuple(found)

    return program.after(name, block(program.nodes))


def sums_of_the_text(patch):
    made = kernel_steps.accumulate
    patch.setattr(
        kernel_steps, "accumulate", lambda program: _reassociated(made(program), "accumulate")
    )


def sums_of_the_parts(patch):
    made = kernel_steps.simplify
    patch.setattr(
        kernel_steps, "simplify", lambda program: _reassociated(made(program), "simplify")
    )


def element_of_a_statistic(patch):
    """The sum of a row is one of all its columns but the last."""
    made = tile_operations._reduce

    def short(name, tile, op, axis):
        if op == "sum" and axis == 1 and isinstance(tile.cols, int) and tile.cols > 1:
            tile = tw.where(tw.col_index(tile) < tile.cols - 1, tile, 0)
        return made(name, tile, op, axis)

    patch.setattr(tile_operations, "_reduce", short)


def element_of_a_product(patch):
    """A load ends one element of k early."""
    made = product_graph._Builder._part

    def shorter(self, name, slot, *rest):
        descriptor, number = made(self, name, slot, *rest)
        columns, rows = descriptor.dims
        dims = (columns - 1, rows) if slot.along_k else (columns, rows - 1)
        return (dataclasses.replace(descriptor, dims=dims) if min(dims) > 0 else descriptor), number

    patch.setattr(product_graph._Builder, "_part", shorter)


def wait_of_a_part(patch):
    """A part that loads a tensor does not wait for the one that stores it."""
    patch.setattr(division_search, "ready", lambda *_: True)


def slot_of_a_buffer(patch):
    """Buffers have one slot fewer than a plan needs."""
    made = fit._slots

    def fewer(*given):
        least, _ = made(*given)
        return (max(1, least - 1),) * 2

    patch.setattr(fit, "_slots", fewer)


#: By what they are; each plants itself by a monkeypatch.
FAULTS = {
    "a wait dropped": wait_of_a_part,
    "two strides swapped, before golden": strides_of_a_load,
    "two strides swapped": strides_of_a_walk,
    "one slot fewer": slot_of_a_buffer,
    "an orientation, before golden": orientation_of_a_tile,
    "an orientation": orientation_of_an_operand,
    "a tail not masked, before golden": tail_of_a_block,
    "a tail not masked": tail_of_an_operand,
    "a sum reassociated, before golden": sums_of_the_text,
    "a sum reassociated": sums_of_the_parts,
    "one element of a reduction dropped, before golden": element_of_a_statistic,
    "one element of a reduction dropped": element_of_a_product,
}
