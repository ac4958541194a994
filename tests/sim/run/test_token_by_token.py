"""Token by token: layers whose caches the chip fills, against the definition and its own caches."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sw.kernels.decoder_layer import decoder_layer
from tests.sw.kernels.kernels_by_definition import BY_DEFINITION

BF16 = np.dtype(ml_dtypes.bfloat16)
WORDS = 32
INPUTS = [each.name for each in decoder_layer.signature.inputs]
LITTLE = {"M": 1, "D": 16, "H": 2, "E": 16, "G": 1, "F": 16}
LLAMA = {"M": 1, "D": 64, "H": 4, "E": 16, "G": 2, "F": 128}


def angles(position, columns):
    turns = position * 10_000.0 ** -np.linspace(0, 1, columns // 2, endpoint=False)
    turns = np.concatenate([turns, turns])[np.newaxis]
    return {"cos": np.cos(turns).astype(BF16), "sin": np.sin(turns).astype(BF16)}


def arrays_of(rng, sizes):
    """Weights and empty caches of a layer."""
    shapes = {
        each.name: tuple(sizes[dim] for dim in each.dims)
        for each in decoder_layer.signature.inputs
        if each.name not in ("X", "cos", "sin")
    }
    return {
        name: (0.0 if name in ("Kc", "Vc") else 1.0) * rng.normal(size=shape) / 4
        for name, shape in shapes.items()
    }


def tokens(layer, rng, sizes, count, layers=2):
    """Tokens and caches of a model whose layers are computed by `layer(past, inputs)`."""
    table = rng.normal(size=(WORDS, sizes["D"])).astype(BF16)
    states = [
        {name: array.astype(BF16) for name, array in arrays_of(rng, sizes).items()}
        for _ in range(layers)
    ]
    words = [1]
    for past in range(count):
        x = table[words[-1]][np.newaxis]
        for state in states:
            given = state | {"X": x} | angles(past, sizes["E"])
            state["Kc"], state["Vc"], x = layer(past, {name: given[name] for name in INPUTS})
        words.append(int((x.astype(np.float32) @ table.astype(np.float32).T).argmax()))
    return words, [state[name] for state in states for name in ("Kc", "Vc")]


def defined(config):
    def layer(past, inputs):
        bits = named[config].pcu.function_bits
        return BY_DEFINITION["decoder_layer"](inputs, bits, BF16, past=past)

    return layer


def launched(program, backend, compiled):
    """A launch list for each layer and token; images are compiled once for a number of keys."""

    def layer(past, inputs):
        if past not in compiled:
            compiled[past] = program.with_options(past=past)
        r = compiled[past].run(*inputs.values(), backend=backend)
        assert r.verified, (past, r.problems)
        return r.Kc, r.Vc, r.Y

    return layer


def require_tokens(config, sizes, count, backend, seed):
    sizes = sizes | {"S": count}
    program = decoder_layer.compile(config, **sizes, dtype=tw.bf16)
    compiled = {}
    found = tokens(launched(program, backend, compiled), np.random.default_rng(seed), sizes, count)
    wanted = tokens(defined(config), np.random.default_rng(seed), sizes, count)
    assert found[0] == wanted[0]
    for one, other in zip(found[1], wanted[1], strict=True):
        assert one.tobytes() == other.tobytes()
    return compiled


def test_a_few_tokens_of_a_little_model(seed):
    require_tokens("tiny", LITTLE, 2, "emulator", seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sixteen_tokens_on_the_emulator(seed):
    compiled = require_tokens("small", LLAMA, 16, "emulator", seed)
    parts = [program.images for program in compiled.values()]
    # Only the image of attention depends on the number of keys.
    assert [len(set(images)) for images in zip(*parts, strict=True)].count(1) == len(parts[0]) - 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sixteen_tokens_on_the_rtl(seed, heavy):
    require_tokens("small", LLAMA, 16, "rtl", seed)


def test_a_cache_that_is_not_handed_on_gives_other_caches(seed):
    """The comparison of caches sees a token that is missing from them."""
    sizes = LITTLE | {"S": 3}
    layer = defined("tiny")

    def forgetful(past, inputs):
        keys, values, x = layer(past, inputs)
        return inputs["Kc"] if past == 1 else keys, values, x

    right = tokens(layer, np.random.default_rng(seed), sizes, 3)
    wrong = tokens(forgetful, np.random.default_rng(seed), sizes, 3)
    assert any(one.tobytes() != other.tobytes() for one, other in zip(right[1], wrong[1]))
