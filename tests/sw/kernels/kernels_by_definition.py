"""Every kernel of `sw/kernels`, one operation at a time, by docs/kernels.md.

Nothing of the project is imported: order, casts and sums are written here, the functions in
`functions_by_definition`.
"""

import ml_dtypes
import numpy as np

from tests.sw.kernels.functions_by_definition import NAN, exp, exp2, reciprocal, rsqrt

__all__ = ["BY_DEFINITION"]

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOAT = np.dtype(np.float32)
ONE = np.float32(1)
#: -2 sqrt(2 / pi), and that times 0.044715.
LINEAR, CUBIC = np.float32(-1.5957691216057308), np.float32(-0.07135481627159628)
EPS = np.float32(1e-5)
FAR = np.float32(np.inf)
#: Elements of a block that nothing else chooses.
BLOCK = 64


def stored(x, dtype):
    """Cast to the format of an output: nearest even, NaN canonical."""
    if dtype == FLOAT:
        return np.where(np.isnan(x), NAN, x.astype(FLOAT))
    if x.dtype == dtype:
        return x
    assert x.dtype == FLOAT and dtype == BF16
    raw = x.view(np.uint32)
    cut = (raw + 0x7FFF + (raw >> 16 & 1) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), cut).view(BF16)


def wide(x):
    return x.astype(np.int32 if x.dtype.kind == "i" else FLOAT)


def row_sum(x):
    """From +0, in ascending order, one rounding per term."""
    total = np.zeros((len(x), 1), x.dtype)
    for column in range(x.shape[1]):
        total = total + x[:, column : column + 1]
    return total


def row_max(x):
    """NaN if there is one; +0 is more than -0."""
    top = x.max(axis=1, keepdims=True)
    plus = ((x == 0) & ~np.signbit(x)).any(axis=1, keepdims=True)
    zero = np.where(plus, np.float32(0), np.float32(-0.0))
    return np.where(top == 0, zero, top)


def row_mean(x):
    return row_sum(x) * (ONE / np.float32(x.shape[1]))


def fma(a, b, c):
    """a * b + c, rounded once: the float64 sum is rounded to odd, so that fp32 decides."""
    product, c = a.astype(np.float64) * b, np.float64(c)
    total = product + c
    part = total - product
    lost = (product - (total - part)) + (c - part)
    even = (total.view(np.int64) & 1 == 0) & np.isfinite(total)
    odd = np.nextafter(total, np.copysign(np.inf, lost))
    return np.where(even & (lost != 0), odd, total).astype(FLOAT)


def inverse_of_one_more(x, width):
    return reciprocal(ONE + exp(x, width), width)


def add(inputs, width):
    return wide(inputs["A"]) + wide(inputs["B"])


def silu(inputs, width):
    x = inputs["X"].astype(FLOAT)
    return x * inverse_of_one_more(-x, width)


def gelu(inputs, width):
    return gelu_of(inputs["X"].astype(FLOAT), width)


def gelu_of(x, width):
    return x * inverse_of_one_more(x * fma(x * x, CUBIC, LINEAR), width)


def transpose(inputs, width):
    return inputs["X"].T.copy()


def softmax(inputs, width):
    x = wide(inputs["X"])
    e = exp(x - row_max(x), width)
    return e * reciprocal(row_sum(e), width)


def rms_norm(inputs, width):
    x = wide(inputs["X"])
    return x * rsqrt(row_mean(x * x) + EPS, width) * wide(inputs["g"])


def layer_norm(inputs, width):
    x = wide(inputs["X"])
    d = x - row_mean(x)
    scaled = d * rsqrt(row_mean(d * d) + EPS, width)
    return scaled * wide(inputs["g"]) + wide(inputs["b"])


def short_products(*operands):
    """Whether fp32 holds every product of such operands exactly: 8 bits each, and in the middle."""
    return all(
        x.dtype.kind == "i"
        or x.dtype == BF16
        and (((np.abs(x) > 2.0**-60) & (np.abs(x) < 2.0**60)) | (x == 0)).all()
        for x in operands
    )


def factor(x):
    """Operand of a product: the bf16 NaN with every bit set but the sign is +0."""
    return np.where(x.view(np.uint16) == 0x7FFF, BF16.type(0), x) if x.dtype == BF16 else x


def product(a, b, total=None):
    """From +0 or a sum, in ascending order, one rounding per term; zero sums are +0."""
    a, b = factor(a), factor(b)
    exact = short_products(a, b)
    a, b = wide(a), wide(b)
    total = np.zeros((len(a), b.shape[1]), a.dtype) if total is None else total
    for k in range(a.shape[1]):
        column, row = a[:, k : k + 1], b[k : k + 1]
        total = total + column * row if exact else fma(column, row, total)
    return total + total.dtype.type(0)


def matmul(inputs, width):
    return product(inputs["A"], inputs["B"])


def gemm(inputs, width):
    return product(inputs["A"], inputs["B"])


def matmul_nt(inputs, width):
    return product(inputs["A"], inputs["B"].T)


def matmul_tn(inputs, width):
    return product(inputs["A"].T, inputs["B"])


def matmul_tt(inputs, width):
    return product(inputs["A"].T, inputs["B"].T)


def residual(inputs, width):
    return product(inputs["A"], inputs["B"]) + wide(inputs["R"])


def linear(inputs, width):
    return product(inputs["X"], inputs["W"]) + wide(inputs["b"])


def linear_gelu(inputs, width):
    return gelu_of(linear(inputs, width), width) + wide(inputs["R"])


def rope(inputs, width):
    x, cos, sin = (inputs[name].astype(FLOAT) for name in ("X", "cos", "sin"))
    a, b = np.split(x, 2, axis=1)
    return x * cos + np.concatenate([-b, a], axis=1) * sin


def gated_mlp(inputs, width):
    gate, up = (product(inputs["X"], inputs[name]) for name in ("Wg", "Wu"))
    h = gate * inverse_of_one_more(-gate, width) * up
    return product(stored(h, BF16), inputs["Wd"])


def halved(sums, times):
    """sums * 2^-times; what becomes less than 2^-126 is +0."""
    times = np.minimum(times, 255)
    y = np.ldexp(sums.astype(np.float64), -times.astype(np.int64)).astype(FLOAT)
    lost = (np.abs(sums) < 2.0**-126) | (np.abs(y) < 2.0**-126)
    return np.where(times == 0, sums, np.where(lost, np.float32(0), y))


def window_parts(queries, keys, window, heads=1):
    """Queries by parts: each from a first to an end, with those of the keys that it takes.

    Of a window they are those of which one may see the first key, some of equal numbers, and the
    rest. Parts of one kind have one number.
    """
    whole = [(0, (0, queries), (0, keys))]
    offset = keys - queries
    rows = 32 * -(-window // 256)
    head = min(queries, max(0, -((offset + 1 - window) // 16) * 16))
    points = (queries - head) // rows if window else 0
    if not window or head + offset < 1 and head:
        return whole
    forms = [(points, rows)]
    # Few points of several heads are one.
    if heads > 1 and points and points * rows + window - 1 <= 1.25 * (rows + window - 1):
        forms.insert(0, (1, points * rows))
    for count, size in forms:
        edges = [0, *(head + number * size for number in range(count + 1)), queries]
        parts = [
            (kind, (first, end), (first + offset + 1 - window if kind else 0, end + offset))
            for kind, first, end in zip([0, *[1] * count, 2], edges, edges[1:])
            if end > first
        ]
        taken = sum((end - first) * (stop - start) for _, (first, end), (start, stop) in parts)
        if taken <= 0.75 * queries * min(keys, offset + -(-queries // 2)):
            return parts
    return whole


def flash_attention(inputs, width, *, causal=False, window=0, tile=BLOCK, block=BLOCK):
    """`tile` and `block` may have one for each kind of parts of a window, in order."""
    q, k, v = (inputs[name] for name in "QKV")
    parts = window_parts(q.shape[1], k.shape[1], window, len(q))
    kinds = list(dict.fromkeys(kind for kind, *_ in parts))
    answers = []
    for kind, rows, keys in parts:
        sizes = {
            noun: each if np.ndim(each) == 0 else each[kinds.index(kind)]
            for noun, each in (("tile", tile), ("block", block))
        }
        taken = {"Q": q[:, slice(*rows)], "K": k[:, slice(*keys)], "V": v[:, slice(*keys)]}
        offset = rows[0] + k.shape[1] - q.shape[1] - keys[0]
        answers.append(_part(taken, width, (causal or window, offset, window), **sizes))
    return np.concatenate(answers, axis=1)


def _part(inputs, width, mask, *, tile, block):
    q, k, v = (inputs[name] for name in "QKV")
    hides, offset, window = mask
    (heads, queries, depth), keys = q.shape, k.shape[1]
    factor = np.float32(depth**-0.5 * np.log2(np.e))
    answers = np.zeros((heads, queries, v.shape[2]), FLOAT)
    for head in range(heads):
        group = head // (heads // len(k))
        for first in range(0, queries, tile):
            rows = slice(first, min(first + tile, queries))
            last = np.arange(queries)[rows, np.newaxis] + offset
            m = np.full((len(last), 1), -(2.0**20), FLOAT)
            o = np.zeros((len(last), v.shape[2] + 1), FLOAT)
            # The loop ends behind the last key that a whole tile of queries would see; it has no
            # end where the first query sees none.
            ends = hides and offset >= 0
            end = first + tile + offset if ends else keys
            for start in range(0, min(end, keys), block):
                part = slice(start, min(start + block, keys))
                s = product(q[head, rows], k[group, part].T)
                behind = last - np.arange(keys)[part]
                if hides:
                    s = np.where((behind >= 0) & (behind < (window or keys + 1)), s, -FAR)
                top = np.where(np.isnan(s), -FAR, s).max(axis=1, keepdims=True)
                new = np.maximum(m, np.ceil(top * factor))
                p = stored(exp2(fma(s, factor, -new), width), BF16)
                values = np.c_[v[group, part], np.ones(p.shape[1], BF16)]
                o, m = product(p, values, halved(o, new - m)), new
            answers[head, rows] = o[:, :-1] * reciprocal(o[:, -1:], width)
    return answers


def attention(inputs, width, *, exact=False, block=BLOCK):
    """In blocks of keys, as `flash_attention`, if there are several keys in bf16."""
    keys = inputs["K"]
    if not exact and keys.dtype == BF16 and keys.shape[1] > 1:
        return flash_attention(inputs, width, block=block)
    heads = []
    for q, k, v in zip(*(inputs[name] for name in "QKV"), strict=True):
        s = product(q, k.T) * np.float32(q.shape[1] ** -0.5)
        e = exp(s - row_max(s), width)
        heads.append(product(stored(e, BF16), v) * reciprocal(row_sum(e), width))
    return np.array(heads)


def paged_attention(inputs, width, **how):
    k, v = (inputs[name][inputs["rows"]].transpose(1, 0, 2) for name in "KV")
    return flash_attention({"Q": inputs["Q"], "K": k, "V": v}, width, **how)


def decoder_layer(inputs, width, *, past=0, block=BLOCK):
    x, heads, groups = inputs["X"], len(inputs["Wq"]), len(inputs["Kc"])
    seen = past + len(x)

    def normed(x, gain):
        return stored(rms_norm({"X": x, "g": inputs[gain]}, width), BF16)

    def turned(x):
        angles = {each: inputs[each] for each in ("cos", "sin")}
        return stored(rope({"X": stored(x, BF16)} | angles, width), BF16)

    n = normed(x, "n1")
    caches = inputs["Kc"].copy(), inputs["Vc"].copy()
    for g in range(groups):
        caches[0][g, past:seen] = turned(product(n, inputs["Wk"][g]))
        caches[1][g, past:seen] = stored(product(n, inputs["Wv"][g]), BF16)
    K, V = (each[:, :seen] for each in caches)
    Q = np.array([turned(product(n, inputs["Wq"][h])) for h in range(heads)])
    how = {"causal": True, "tile": len(x), "block": block}
    o = stored(flash_attention({"Q": Q, "K": K, "V": V}, width, **how), BF16)
    y = product(np.concatenate(o, axis=1), np.concatenate(inputs["Wo"]))
    x = stored(wide(x) + y, BF16)
    return *caches, wide(x) + gated_mlp(inputs | {"X": normed(x, "n2")}, width)


def embedding(inputs, width):
    return inputs["E"][inputs["ids"]]


def scatter(inputs, width):
    table = inputs["T"].copy()
    for number, row in zip(inputs["ids"], inputs["X"], strict=True):
        table[number] = row
    return table


def scatter_add(inputs, width):
    table = inputs["T"].copy()
    for number, row in zip(inputs["ids"], inputs["G"], strict=True):
        table[number] += row
    return table


def histogram(inputs, width):
    counts = inputs["H"].copy()
    for number in inputs["ids"]:
        counts[number, 0] += np.int32(1)
    return counts


def argmax(inputs, width):
    x = inputs["X"].astype(np.float64)
    found = [np.flatnonzero(row == row.max()) for row in x]
    return np.array([[each[0] if len(each) else x.shape[1]] for each in found], np.int32)


def conv2d(inputs, width):
    x, f = inputs["X"], inputs["F"]
    rows, columns = (x.shape[axis + 1] - f.shape[axis] + 1 for axis in (0, 1))
    patches = [
        x[:, r : r + rows, s : s + columns] for r in range(f.shape[0]) for s in range(f.shape[1])
    ]
    terms = np.concatenate(patches, axis=3)
    sums = product(terms.reshape(-1, terms.shape[3]), f.reshape(-1, f.shape[3]))
    return sums.reshape(*terms.shape[:3], -1)


def gda(inputs, width):
    means = inputs["mu"][inputs["y"]]
    d = stored(wide(inputs["X"]) - wide(means), BF16)
    return product(d.T, d)


#: Inputs by name and significant bits of the functions -> output before its cast, by kernel.
#: Arrays that are updated in place come first, as they are stored.
_ELEMENTS = (add, silu, gelu, transpose, softmax, rms_norm, layer_norm, rope)
_BY_NUMBER = (embedding, scatter, scatter_add, histogram, argmax)
_PRODUCTS = (
    *(matmul, gemm, matmul_nt, matmul_tn, matmul_tt),
    *(residual, linear, linear_gelu, gated_mlp, attention, flash_attention),
    *(paged_attention, decoder_layer, gda, conv2d),
)


def _by_definition(kernel):
    def answer(inputs, width, dtype, **options):
        with np.errstate(all="ignore"):
            found = kernel(inputs, width, **options)
            if isinstance(found, tuple):
                return *found[:-1], stored(found[-1], dtype)
            return stored(found, dtype)

    return answer


BY_DEFINITION = {
    kernel.__name__: _by_definition(kernel) for kernel in (*_ELEMENTS, *_BY_NUMBER, *_PRODUCTS)
}
