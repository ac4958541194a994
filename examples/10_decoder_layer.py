"""Tutorial 10. A decoder layer of a Llama: parts in one launch list, and a cache that they fill.

The layer stores the keys and values of its tokens in caches in memory, behind those of earlier
tokens, and attends to all of them. Each launch list computes one step of a conversation.
"""

import ml_dtypes
import numpy as np

import tilewright as tw
from sw.kernels.decoder_layer import decoder_layer

#: Columns of a token and of a head, heads of queries and of keys, inner columns, rows of a cache.
D, E, H, G, F, S = 64, 16, 4, 2, 128, 32
WEIGHTS = {
    "n1": (D,),
    "Wq": (H, D, E),
    "Wk": (G, D, E),
    "Wv": (G, D, E),
    "Wo": (H, E, D),
    "n2": (D,),
    "Wg": (D, F),
    "Wu": (D, F),
    "Wd": (F, D),
}


def turns(positions):
    """Cosines and sines of the angles by which the halves of queries and keys are turned."""
    angles = positions[:, np.newaxis] * 10_000.0 ** -np.linspace(0, 1, E // 2, endpoint=False)
    angles = np.concatenate([angles, angles], axis=1)
    return {"cos": np.cos(angles), "sin": np.sin(angles)}


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    arrays = {name: rng.normal(size=shape) / 8 for name, shape in WEIGHTS.items()}
    arrays |= {"Kc": np.zeros((G, S, E)), "Vc": np.zeros((G, S, E))}
    # A prompt of three tokens: golden computes it, as it would run on any chip.
    prompt = arrays | {"X": rng.normal(size=(3, D))} | turns(np.arange(3))
    order = [each.name for each in decoder_layer.signature.inputs]
    first = [prompt[name].astype(ml_dtypes.bfloat16) for name in order]
    keys, values, outputs = decoder_layer(*first)
    # The fourth token, behind three keys, on the emulated chip.
    sizes = {"M": 1, "D": D, "E": E, "H": H, "G": G, "F": F, "S": S}
    program = decoder_layer.compile("small", **sizes, past=3, dtype=tw.bf16)
    print(program.report())
    token = arrays | {"X": outputs[-1:], "Kc": keys, "Vc": values} | turns(np.array([3]))
    print(
        program.run(*(token[name].astype(ml_dtypes.bfloat16) for name in order), backend="emulator")
    )
