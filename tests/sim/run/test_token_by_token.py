"""Token by token: layers whose caches the chip fills, against the definition and its own caches."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sw.kernels.decoder_layer import decoder_layer, layer
from tests.sw.kernels.kernels_by_definition import BY_DEFINITION

BF16 = np.dtype(ml_dtypes.bfloat16)
WORDS = 32
INPUTS = [each.name for each in decoder_layer.signature.inputs]
LITTLE = {"M": 1, "D": 16, "H": 2, "E": 16, "G": 1, "F": 16}
LLAMA = {"M": 1, "D": 64, "H": 4, "E": 16, "G": 2, "F": 128}


@tw.kernel(
    "X[M, D], n1[L, D], Wq[L, H, D, E], Wk[L, G, D, E], Wv[L, G, D, E], cos[M, E], sin[M, E], "
    "Wo[L, H, E, D], n2[L, D], Wg[L, D, F], Wu[L, D, F], Wd[L, F, D], Kc[L, G, S, E], "
    "Vc[L, G, S, E] -> Y[M, D]: bf16, Kc, Vc"
)
def model(X, n1, Wq, Wk, Wv, cos, sin, Wo, n2, Wg, Wu, Wd, Kc, Vc, Y, past=0):
    """All layers of a model as one launch list."""
    x = tw.load_tile(X)
    for n in tw.repeat(n1.shape[0]):
        weights = n1[n], Wq[n], Wk[n], Wv[n], cos, sin, Wo[n], n2[n], Wg[n], Wu[n], Wd[n]
        x = layer(x, *weights, Kc[n], Vc[n], past, 1e-5).to(tw.bf16)
    tw.store_tile(Y, x)


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


def tokens(step, rng, sizes, count, layers=2):
    """Tokens and caches of a model: `step(past, inputs)` takes a token through its layers.

    `inputs` has those of a layer, with weights and caches of all layers.
    """
    table = rng.normal(size=(WORDS, sizes["D"])).astype(BF16)
    drawn = [arrays_of(rng, sizes) for _ in range(layers)]
    state = {name: np.stack([each[name] for each in drawn]).astype(BF16) for name in drawn[0]}
    words = [1]
    for past in range(count):
        given = state | {"X": table[words[-1]][np.newaxis]} | angles(past, sizes["E"])
        state["Kc"], state["Vc"], x = step(past, {name: given[name] for name in INPUTS})
        words.append(int((x.astype(np.float32) @ table.astype(np.float32).T).argmax()))
    return words, [state["Kc"], state["Vc"]]


def by_layer(layer):
    """A step by a function of one layer, `layer(past, inputs)`."""

    def step(past, inputs):
        x, caches = inputs["X"], []
        shared = ("X", "cos", "sin")
        for number in range(len(inputs["Kc"])):
            own = {name: each if name in shared else each[number] for name, each in inputs.items()}
            *cache, x = layer(past, own | {"X": x})
            caches.append(cache)
        keys, values = zip(*caches)
        return np.stack(keys), np.stack(values), x

    return step


def defined(config):
    def layer(past, inputs):
        bits = named[config].pcu.function_bits
        return BY_DEFINITION["decoder_layer"](inputs, bits, BF16, past=past)

    return layer


def launched(program, backend, compiled):
    """A launch list for each call; images are compiled once for a number of keys."""

    def step(past, inputs):
        if past not in compiled:
            compiled[past] = program.with_options(past=past)
        r = compiled[past].run(*inputs.values(), backend=backend)
        assert r.verified, (past, r.problems)
        return r.Kc, r.Vc, r.Y

    return step


def require_tokens(config, sizes, count, backend, seed, *, layers=None):
    """Compare with the definition; `layers` are one launch list, None: each layer is one."""
    sizes = sizes | {"S": count}
    kernel, more = (model, {"L": layers}) if layers else (decoder_layer, {})
    program = kernel.compile(config, **sizes, **more, dtype=tw.bf16)
    # The first token has no past, as the program is compiled for.
    compiled = {kernel.options["past"]: program}
    step = launched(program, backend, compiled)
    step = step if layers else by_layer(step)
    found = tokens(step, np.random.default_rng(seed), sizes, count, layers or 2)
    wanted = by_layer(defined(config))
    wanted = tokens(wanted, np.random.default_rng(seed), sizes, count, layers or 2)
    assert found[0] == wanted[0]
    for one, other in zip(found[1], wanted[1], strict=True):
        assert one.tobytes() == other.tobytes()
    return compiled


@pytest.mark.slow
def test_a_few_tokens_of_a_little_model(seed):
    require_tokens("tiny", LITTLE, 2, "emulator", seed)


def test_a_few_tokens_of_layers_in_one_launch_list(seed):
    compiled = require_tokens("tiny", LITTLE, 2, "emulator", seed, layers=2)
    assert "launches; through memory" in compiled[1].report()
    parts = zip(compiled[0].images, compiled[1].images, strict=True)
    # Only the image of attention depends on the number of keys.
    assert sum(one != other for one, other in parts) <= 1


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

    right = tokens(by_layer(layer), np.random.default_rng(seed), sizes, 3)
    wrong = tokens(by_layer(forgetful), np.random.default_rng(seed), sizes, 3)
    assert any(one.tobytes() != other.tobytes() for one, other in zip(right[1], wrong[1]))
