"""attn-h: faults planted in what attention is made of, before golden and behind it, each caught."""

import pytest

from tests.must.mutants import Mutant, require_killed

_ON_A_CHIP = "tests/sw/kernels/test_compiled_kernels.py::test_a_chip_computes_"
_GOLDEN_CACHE = (
    "tests/sw/kernels/test_decoder_layer.py::"
    "test_golden_is_the_definition_behind_any_number_of_keys[15]"
)
#: The sum of powers, of all keys of a block but the first.
_SHORT = """
        from hw.numeric.formats import int32
        from sw.ir.format_rules import pred

        def tile(name, fmt):
            return names.fresh(ir.Value(name, TileType(scores.type.cols, Axis(1), fmt)))

        number = ir.Iota((), (tile("n", int32),), span, Affine(), 0, scores.type.cols, Axis(1))
        late = ir.Map((number.result, ir.Constant(0)), (tile("late", pred),), span, op="gt")
        counted = ir.Map(
            (late.result, ir.Constant(1.0), ir.Constant(0.0)), (tile("c", fp32),), span, op="where"
        )
        short = ir.Cast((counted.result,), (tile("short", bf16),), span)
        nodes.extend((number, late, counted, short))
        total = ir.Matmul((powers, short.result), (nexts[softmax.total],), summed)
"""

#: By what they are; "before golden" is a fault that the golden result has, too.
FAULTS = {
    "a mask shows one key too many, before golden": Mutant(
        "sw/language/tile_operations.py",
        'return _index_tile("col_index", block, 1)',
        'return _index_tile("col_index", block, 1) - 1',
        "tests/sw/softmax/test_online.py::test_faults_of_the_form_are_found[no rescaling]",
    ),
    "a mask shows one key too many, on the chip": Mutant(
        "sw/stages/softmax/softmax_pipeline.py",
        "offset=work.offset + number * self.columns,",
        "offset=work.offset + number * self.columns + 1,",
        _ON_A_CHIP + "attention_of_any_shape_and_mask",
    ),
    "the running maximum falls, before golden": Mutant(
        "hw/numeric/fused_softmax.py",
        "return elementwise.maximum(old, ceil(elementwise.multiply(factor, maxima)))",
        "return ceil(elementwise.multiply(factor, maxima))",
        "tests/sw/softmax/test_online.py::test_any_mask_hides_keys[first]",
    ),
    "the running maximum falls, in the chip's statistics": Mutant(
        "hw/matrix/softmax/score_columns.py",
        "Mux(_order(score) > _order(old), score, old)",
        "score",
        "tests/hw/matrix/test_softmax_parts.py::test_columns_keep_the_greatest_score_of_each_block",
    ),
    "the row of ones is one key short, before golden": Mutant(
        "sw/softmax/online.py",
        "total = ir.Matmul((powers, ones.result), (nexts[softmax.total],), summed)",
        _SHORT,
        "tests/sw/softmax/test_online.py::"
        "test_random_calls_equal_the_definition_by_bytes_and_float64_within_the_bound[0]",
    ),
    "the row of ones is one key short, on the chip": Mutant(
        "sw/stages/softmax/softmax_pipeline.py",
        "LoopProgram(r, 1, slope=1 - r, outer=phase)",
        "LoopProgram(r - 1, 1, slope=2 - r, outer=phase)",
        "tests/sw/stages/test_softmax_pipeline.py::"
        "test_blocks_are_kept_or_loaded_for_each_group[small-None]",
    ),
    "keys of a group of queries are not loaded again": Mutant(
        "sw/stages/softmax/softmax_pipeline.py",
        "loops = (BoxLoop(sizes.groups), sizes.count.boxes(0, dimension, step))",
        "loops = (BoxLoop(1), sizes.count.boxes(0, dimension, step))",
        "tests/sw/stages/test_softmax_pipeline.py::"
        "test_blocks_are_kept_or_loaded_for_each_group[small-None]",
    ),
    "keys of another group of heads are those of the first": Mutant(
        "sw/parts/points/peel.py",
        "strides[symbol] += step * factor",
        "strides[symbol] += step * factor * (tensor.name != 'K')",
        "tests/sw/softmax/test_heads.py::test_random_heads_equal_golden_on_the_emulator[small-90]",
    ),
    "a token's row of the cache is one early, before golden": Mutant(
        "sw/language/tensor.py",
        "            end = as_affine(default if item is None else item)\n",
        "            end = as_affine(default if item is None else item)\n"
        "            if self.name in ('Kc', 'Vc') and key.start:\n"
        "                end = end - 1\n",
        _GOLDEN_CACHE,
    ),
    "a token's row of the cache is one early, on the chip": Mutant(
        "sw/parts/points/peel.py",
        "offset += step * begin.constant",
        "offset += step * max(begin.constant - 1, 0)",
        "tests/sw/kernels/test_decoder_layer.py::test_the_emulator_is_golden_behind_other_keys",
    ),
    "the token between a store and the load behind it is dropped": Mutant(
        "hw/agcu/issuer.py",
        "granted.append(self.i_tokens[wait.port] >= wait.tokens)",
        "granted.append(Const(1))",
        "tests/hw/agcu/test_issuer.py::test_a_command_never_leaves_without_its_token",
    ),
    "a part that loads runs before the one that stores": Mutant(
        "sw/parts/order.py",
        "            if any(isinstance(each, ir.Store) for each in before):\n",
        "            if False:\n",
        "tests/sw/parts/test_division.py::test_updates_in_place_keep_their_order",
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("attn-h", goal="faults planted in attention: each caught by a named test")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_by_its_test(fault, copy):
    require_killed(FAULTS[fault], copy)
