"""Lists of ten bottlenecks, two of each kind, in the order in which they were chosen."""

from hw.numeric.formats import fp32
from sw.kernels.add import add
from sw.kernels.argmax import argmax
from sw.kernels.flash_attention import flash_attention
from sw.kernels.gated_mlp import gated_mlp
from sw.kernels.gelu import gelu
from sw.kernels.gemm import gemm
from sw.kernels.layer_norm import layer_norm
from sw.kernels.linear import linear
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul
from sw.kernels.residual import residual
from sw.kernels.rms_norm import rms_norm
from sw.kernels.rope import rope
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax
from sw.kernels.transpose import transpose
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.kernels.transposed.matmul_tt import matmul_tt
from tests.planted_bottlenecks import PCU, PORT, SMALL, Planted, chip, slots

__all__ = ["FIRST", "FOURTH", "SECOND", "THIRD"]

DECODE = {"H": 2, "G": 1, "M": 1, "S": 256, "D": 16}

#: Ten bottlenecks, two of each kind, that the rules of the causes were improved by.
FIRST = {
    "slow memory: late answers, softmax": Planted(
        softmax,
        {"M": 64, "N": 64},
        {"latency": 2000},
        {"latency": 20},
        (("memory", "agcu_0"),),
    ),
    "slow memory: reads pause, decoding": Planted(
        flash_attention,
        DECODE,
        SMALL | {"channel_stalls": (0.0, 0.9, 0.0, 0.0, 0.0)},
        SMALL,
        (("memory", "agcu"),),
    ),
    "one slot: product of a transpose": Planted(
        matmul_tn,
        {"M": 64, "N": 512, "K": 64},
        SMALL | slots(a_tile=1, b_tile=1),
        SMALL,
        (("slots", "pmu"),),
    ),
    "one slot: product by a transpose": Planted(
        matmul_nt,
        {"M": 16, "N": 128, "K": 64},
        slots(a_tile=1, b_tile=1),
        {},
        (("slots", "pmu"),),
    ),
    "narrow link: weights for two rows": Planted(
        linear,
        {"M": 2, "N": 256, "K": 256},
        {"config": chip("small", agcus=1)},
        SMALL,
        PORT,
        "emulator",
    ),
    "narrow link: results of many units": Planted(
        matmul,
        {"M": 128, "N": 128, "K": 16},
        SMALL | {"out": fp32},
        SMALL,
        PORT,
    ),
    "slow PCU: one lane, softmax": Planted(
        softmax,
        {"M": 64, "N": 64},
        {"config": chip("tiny", lanes=1), "latency": 20},
        {"latency": 20},
        PCU,
        "emulator",
    ),
    "slow PCU: two phases, norm": Planted(
        rms_norm,
        {"M": 64, "N": 128},
        SMALL | {"latency": 20},
        {"config": chip("small", lanes=8), "latency": 20},
        PCU,
    ),
    "head of line: three streams, residual": Planted(
        residual,
        {"M": 64, "N": 32, "K": 16},
        {},
        {"config": chip("tiny", agcus=2)},
        PORT,
    ),
    "head of line: all streams, gated layer": Planted(
        gated_mlp,
        {"M": 64, "D": 128, "F": 128},
        {"config": chip("small", agcus=1)},
        SMALL,
        PORT,
        "emulator",
    ),
}

#: Ten others, chosen by their relief alone; two of them, slow memory and a narrow link, showed more
#: causes.
SECOND = {
    "slow memory: late answers, norm": Planted(
        rms_norm,
        {"M": 64, "N": 128},
        SMALL | {"latency": 1500},
        SMALL | {"latency": 20},
        (("memory", "agcu"),),
    ),
    "slow memory: writes pause, activation": Planted(
        silu,
        {"M": 64, "N": 64},
        {"channel_stalls": (0.0, 0.0, 0.0, 0.95, 0.0)},
        {},
        (("memory", "agcu_0"),),
    ),
    "one slot: product of transposes": Planted(
        matmul_tt,
        {"M": 64, "N": 256, "K": 128},
        SMALL | slots(a_tile=1, b_tile=1),
        SMALL,
        (("slots", "pmu"),),
    ),
    "one slot: product by blocks": Planted(
        gemm,
        {"M": 32, "N": 32, "K": 128},
        slots(a=1, b=1),
        {},
        (("slots", "pmu"),),
    ),
    "narrow link: weights, both transposed": Planted(
        matmul_tt,
        {"M": 2, "N": 64, "K": 128},
        {},
        {"config": chip("tiny", link=128)},
        PORT,
    ),
    "narrow link: three streams of a sum": Planted(
        add,
        {"M": 64, "N": 64},
        {},
        {"config": chip("tiny", link=128)},
        PORT,
    ),
    "slow PCU: one lane, activation": Planted(
        gelu,
        {"M": 64, "N": 128},
        {"config": chip("small", lanes=1)},
        {"config": chip("small", lanes=8)},
        PCU,
        "emulator",
    ),
    "slow PCU: lanes behind a product": Planted(
        linear_gelu,
        {"M": 128, "N": 64, "K": 32},
        SMALL,
        {"config": chip("small", lanes=8)},
        PCU,
    ),
    "head of line: all streams, decoding": Planted(
        flash_attention,
        {"H": 1, "G": 1, "M": 1, "S": 256, "D": 128},
        {"config": chip("small", agcus=1)},
        SMALL,
        PORT,
        "emulator",
    ),
    "head of line: four streams, rotation": Planted(
        rope,
        {"M": 64, "N": 64},
        {},
        {"config": chip("tiny", agcus=2)},
        PORT,
    ),
}

#: Ten others, chosen by their relief alone; one of them, attention, showed a rule that named slots
#: where there is no buffer.
THIRD = {
    "slow memory: late answers, norm with means": Planted(
        layer_norm,
        {"M": 32, "N": 64},
        {"latency": 2000},
        {"latency": 20},
        (("memory", "agcu_0"),),
    ),
    "slow memory: all channels pause, product": Planted(
        matmul,
        {"M": 96, "N": 96, "K": 96},
        SMALL | {"stall": 0.85},
        SMALL,
        (("memory", "agcu"),),
    ),
    "one slot: larger product by blocks": Planted(
        gemm,
        {"M": 128, "N": 128, "K": 128},
        SMALL | slots(a=1, b=1),
        SMALL,
        (("slots", "pmu"),),
    ),
    "one slot: ragged product": Planted(
        matmul,
        {"M": 40, "N": 24, "K": 96},
        slots(a_tile=1, b_tile=1),
        {},
        (("slots", "pmu"),),
    ),
    "narrow link: transpose": Planted(
        transpose,
        {"M": 96, "N": 64},
        {},
        {"config": chip("tiny", link=128)},
        PORT,
    ),
    "narrow link: flat product and residual": Planted(
        residual,
        {"M": 64, "N": 48, "K": 8},
        {},
        {"config": chip("tiny", link=128)},
        PORT,
    ),
    "slow PCU: two lanes, softmax": Planted(
        softmax,
        {"M": 64, "N": 128},
        SMALL,
        {"config": chip("small", lanes=8)},
        PCU,
    ),
    "slow PCU: two lanes, attention": Planted(
        flash_attention,
        {"H": 1, "G": 1, "M": 128, "S": 128, "D": 16},
        SMALL,
        {"config": chip("small", lanes=8)},
        PCU,
    ),
    "head of line: four streams, residual": Planted(
        residual,
        {"M": 128, "N": 96, "K": 32},
        {"config": chip("small", agcus=1)},
        SMALL,
        PORT,
        "emulator",
    ),
    "head of line: weights of three products": Planted(
        gated_mlp,
        {"M": 8, "D": 128, "F": 128},
        {"config": chip("small", agcus=1)},
        SMALL,
        PORT,
        "emulator",
    ),
}

#: Ten others, chosen by their relief alone when the rules stood as they are.
FOURTH = {
    "slow memory: late answers, linear layer": Planted(
        linear,
        {"M": 48, "N": 96, "K": 64},
        SMALL | {"latency": 1200},
        SMALL | {"latency": 20},
        (("memory", "agcu"),),
    ),
    "slow memory: addresses pause, transpose": Planted(
        transpose,
        {"M": 64, "N": 64},
        {"channel_stalls": (0.97, 0.0, 0.0, 0.0, 0.0)},
        {},
        (("memory", "agcu_0"),),
    ),
    "one slot: ragged product on more units": Planted(
        matmul,
        {"M": 72, "N": 200, "K": 112},
        SMALL | slots(a_tile=1, b_tile=1),
        SMALL,
        (("slots", "pmu"),),
    ),
    "one slot: few rows of a transpose": Planted(
        matmul_tn,
        {"M": 16, "N": 64, "K": 96},
        slots(a_tile=1, b_tile=1),
        {},
        (("slots", "pmu"),),
    ),
    "narrow link: weights for three rows": Planted(
        matmul_tn,
        {"M": 3, "N": 96, "K": 64},
        {},
        {"config": chip("tiny", link=128)},
        PORT,
    ),
    "narrow link: weights by blocks": Planted(
        gemm,
        {"M": 3, "N": 64, "K": 96},
        {},
        {"config": chip("tiny", link=128)},
        PORT,
    ),
    "slow PCU: two lanes, argmax": Planted(
        argmax,
        {"M": 64, "N": 128},
        SMALL,
        {"config": chip("small", lanes=8)},
        PCU,
    ),
    "slow PCU: one lane, another activation": Planted(
        silu,
        {"M": 96, "N": 128},
        {"config": chip("small", lanes=1)},
        {"config": chip("small", lanes=8)},
        PCU,
        "emulator",
    ),
    "head of line: four streams, activation behind a product": Planted(
        linear_gelu,
        {"M": 96, "N": 64, "K": 32},
        {"config": chip("small", agcus=1, lanes=8)},
        {"config": chip("small", lanes=8)},
        PORT,
        "emulator",
    ),
    "head of line: three streams, linear layer": Planted(
        linear,
        {"M": 64, "N": 128, "K": 16},
        {"config": chip("small", agcus=1)},
        SMALL,
        PORT,
        "emulator",
    ),
}
