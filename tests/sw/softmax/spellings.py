"""Programs of a softmax over blocks: other spellings of one, and some that only look like it."""

import re

import sw.language as tw

__all__ = ["COMPUTED", "NEAR_MISSES", "SPELLINGS", "program_of"]

#: Body of the loop over blocks of keys, and what stands around it; a spelling replaces lines.
TEXT = """\
def program(Q, K, V, O):
    (M, D), (S, E) = Q.shape, V.shape
    for i in tw.metapipe(M):
        q = tw.load_tile(Q[i, :])
        at = tw.row_index(i) + 3
        m, l, o = tw.full(i, 1, -tw.inf), tw.zeros(i, 1), tw.zeros(i, E)
        for j in tw.metapipe(S):
            k, v = tw.load_tile(K[j, :]), tw.load_tile(V[j, :])
            s = q @ k.T * 0.25
            s = tw.where(at >= tw.col_index(j), s, -tw.inf)
            top = tw.maximum(m, tw.row_max(s))
            p, fade = tw.exp(s - top), tw.exp(m - top)
            l = l * fade + tw.row_sum(p)
            o = o * fade + p.to(tw.bf16) @ v
            m = top
        tw.store_tile(O[i, :], o / l)
"""

SCALE = "s = q @ k.T * 0.25\n"
MASK = "s = tw.where(at >= tw.col_index(j), s, -tw.inf)\n"
TOP = "top = tw.maximum(m, tw.row_max(s))\n"
POWERS = "p, fade = tw.exp(s - top), tw.exp(m - top)\n"
TOTAL = "l = l * fade + tw.row_sum(p)\n"
SUMS = "o = o * fade + p.to(tw.bf16) @ v\n"
LOOP = "for j in tw.metapipe(S):\n"
STARTS = "m, l, o = tw.full(i, 1, -tw.inf), tw.zeros(i, 1), tw.zeros(i, E)\n"
RESULT = "tw.store_tile(O[i, :], o / l)\n"
INDENT = "            "

_NAMES = {"m": "peak", "l": "weight", "o": "mix", "p": "chance", "s": "score", "top": "high"}
_NAMES |= {"fade": "drop", "at": "place", "q": "asked", "k": "known", "v": "told"}

#: Replacements that leave the meaning, by name.
SPELLINGS = {
    "as it is": {},
    "renamed": {TEXT: re.sub(r"\b[a-z]+\b", lambda name: _NAMES.get(name[0], name[0]), TEXT)},
    "o before l": {TOTAL: "", SUMS: SUMS + INDENT + TOTAL},
    "operands commuted": {
        SCALE: "s = 0.25 * (q @ k.T)\n",
        TOP: "top = tw.maximum(tw.row_max(s), m)\n",
        TOTAL: "l = tw.row_sum(p) + fade * l\n",
        SUMS: "o = p.to(tw.bf16) @ v + fade * o\n",
    },
    "a finite start": {STARTS: STARTS.replace("-tw.inf", "-1e30")},
    "a reciprocal": {RESULT: "tw.store_tile(O[i, :], tw.reciprocal(l) * o)\n"},
    "a quotient for a factor": {SCALE: "s = q @ k.T / 4.0\n"},
    "two factors": {SCALE: "s = (q @ k.T) * 0.5 * 0.5\n"},
    "two negations": {SCALE: "s = -(q @ k.T) * -0.25\n"},
    "the mask first": {
        SCALE: "",
        MASK: "s = tw.where(at >= tw.col_index(j), q @ k.T, -tw.inf) * 0.25\n",
    },
    "the mask added": {MASK: "s = s + tw.where(at >= tw.col_index(j), 0.0, -tw.inf)\n"},
    "the mask turned": {MASK: "s = tw.where(at < tw.col_index(j), -tw.inf, s)\n"},
    "the mask of a difference": {
        MASK: "s = tw.where(-1 < at - tw.col_index(j), s, -tw.inf)\n",
    },
    "an early end": {LOOP: "for j in tw.metapipe(S, until=i.stop + 3):\n"},
    "a later end": {LOOP: "for j in tw.metapipe(S, until=i.stop + 9):\n"},
    "a sum of a negation": {POWERS: "p, fade = tw.exp(s + (-top)), tw.exp(-(top - m))\n"},
    "the maximum twice": {
        POWERS: "p = tw.exp(s - tw.maximum(m, tw.row_max(s)))\n"
        + INDENT
        + "fade = tw.exp(m - top)\n"
    },
    "the powers rounded first": {TOTAL: "l = l * fade + tw.row_sum(p.to(tw.bf16))\n"},
    "a column of ones": {
        TOTAL: "l = l * fade + p.to(tw.bf16) @ tw.full(j, 1, 1.0)\n",
    },
    "powers of two": {
        SCALE: "s = q @ k.T * (0.25 / 0.6931471805599453)\n",
        POWERS: "p, fade = tw.exp2(s - top), tw.exp2(m - top)\n",
    },
    "buffers of what is loaded": {
        "k, v = tw.load_tile(K[j, :]), tw.load_tile(V[j, :])\n": (
            "k = tw.buffer(tw.load_tile(K[j, :]), slots=3)\n"
            + INDENT
            + "v = tw.buffer(tw.load_tile(V[j, :]))\n"
        ),
    },
}

#: Those that golden has in the machine's form, but no chip computes.
COMPUTED = {
    "the scale in q": {
        "q = tw.load_tile(Q[i, :])\n": "q = (tw.load_tile(Q[i, :]) * 0.25).to(tw.bf16)\n",
        SCALE: "s = q @ k.T\n",
    },
}

#: Replacements that change it, with what is said of them.
NEAR_MISSES = {
    "another maximum": ({TOP: "top = tw.maximum(m, tw.row_max(q @ k.T))\n"}, "exponential of the"),
    "l not scaled": ({TOTAL: "l = l + tw.row_sum(p)\n"}, r"must be `l \* fade \+ tw.row_sum"),
    "o not scaled": ({SUMS: "o = o + p.to(tw.bf16) @ v\n"}, "scaled by the fade"),
    "a fade upside down": ({POWERS: "p, fade = tw.exp(s - top), tw.exp(top - m)\n"}, "maximum bef"),
    "two bases": ({POWERS: "p, fade = tw.exp(s - top), tw.exp2(m - top)\n"}, "`exp` of the maxima"),
    "powers in fp16": ({SUMS: "o = o * fade + p.to(tw.fp16) @ v\n"}, "multiplied in bf16"),
    "other powers": (
        {SUMS: "o = o * fade + (p * 2.0).to(tw.bf16) @ v\n"},
        "multiplied in bf16",
    ),
    "a start of l": ({STARTS: STARTS.replace("tw.zeros(i, 1)", "tw.full(i, 1, 1.0)")}, "from zer"),
    "a start of m": ({STARTS: STARTS.replace("-tw.inf", "0.0")}, r"from at most -2\^20"),
    "a bias of scores": ({MASK: "s = s + tw.row_sum(q)\n"}, "Scores must be a product, times"),
    "soft caps": ({MASK: "s = tw.tanh(s)\n"}, "Scores must be a product, times"),
    "a scale that is a tile": ({SCALE: "s = q @ k.T * tw.row_max(q)\n"}, "Scores must be a produc"),
    "a finite mask": ({MASK: MASK.replace("-tw.inf", "-1e9")}, "Scores must be a product, times"),
    "an end too early": (
        {LOOP: "for j in tw.metapipe(S, until=i.stop + 2):\n"},
        "`until` must hide no key that the scores show",
    ),
    "an end without a mask": (
        {LOOP: "for j in tw.metapipe(S, until=i.stop + 3):\n", MASK: ""},
        "`until` must hide no key that the scores show",
    ),
    "more than the quotient": (
        {RESULT: "tw.store_tile(O[i, :], o / (l + 1.0))\n"},
        "`o / l` alone",
    ),
    "the sums themselves": ({RESULT: "tw.store_tile(O[i, :], o + l * 0.0)\n"}, "`o / l` alone"),
    "the quotient turned": ({RESULT: "tw.store_tile(O[i, :], l / o)\n"}, "`o / l` alone"),
    "the maximum kept": ({RESULT: "tw.store_tile(O[i, :], o / l + m)\n"}, "`o / l` alone"),
    "a fourth tile": (
        {
            STARTS: STARTS + "        n = tw.zeros(i, 1)\n",
            TOTAL: TOTAL + INDENT + "n = n + fade\n",
            RESULT: "tw.store_tile(O[i, :], o / l + n)\n",
        },
        "carries a maximum and two sums, not 4 tiles",
    ),
}


SIGNATURE = "Q[M, D], K[S, D], V[S, E] -> O[M, E]"


def program_of(changes, *, name="program", dtype=tw.bf16, signature=SIGNATURE, **sizes):
    """Program of the text with some lines replaced."""
    text = TEXT
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new) if new else text.replace(INDENT + old, "")
    space = {"tw": tw}
    exec(compile(text, f"{name}.py", "exec"), space)
    sizes = {"M": 20, "S": 37, "D": 16, "E": 24} | sizes
    kernel = tw.kernel(signature)(space["program"])
    return kernel.trace(dtype=dtype, **sizes)
