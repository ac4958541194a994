"""Random kernels with a loop that carries tiles, as source text."""

import linecache
import re

import sw.language as tw

__all__ = ["draw_carries"]

_UNARY = ("tw.exp({} * 0.01)", "tw.maximum({}, 0.1)", "abs({})", "{} * 0.5", "-{}", "tw.tanh({})")
_BINARY = ("{} + {}", "{} - {}", "{} * {}", "tw.maximum({}, {})", "tw.where({} < 0.3, {}, 0.5)")
_STARTS = ("tw.zeros(M, N)", "tw.full(M, N, 0.5)", "tw.load_tile(S)", "tw.load_tile(X[0])")


def draw_carries(draw, number):
    """A kernel over steps of M x N tiles, with one to three carried tiles, and its sizes.

    The third is the first of two iterations ago. There may be points around the loop.

    Parameters
    ----------
    draw : random.Random
    number : int
        Distinguishes its file from others.
    """
    carries = ["a", "b"][: draw.randint(1, 2)]
    lines = ["def drawn(X, Z, W, S, Y, E):", "    T, M, N = X.shape"]
    points = draw.choice([0, 0, 2, 9])
    loop = draw.choice(["each", "repeat"]) if not points else "each"
    lines += [f"    {each} = {draw.choice(_STARTS)}.to(tw.fp32)" for each in carries]
    lagging = ["p"] if draw.random() < 0.4 else []
    lines += [f"    {each} = {carries[0]}" for each in lagging]
    lines += ["    w = tw.load_tile(W)", f"    for t in tw.{loop}(T):"]
    values = [*carries, *lagging]
    body = [("x", "tw.load_tile(X[t])"), ("z", "tw.load_tile(Z[:, t])")]
    # What no iteration reads is not carried.
    body = [*draw.sample(body, draw.randint(1, 2)), ("c", f"{carries[0]} * {carries[-1]}")]
    body += [("d", f"c + {each}") for each in lagging]
    for step in range(draw.randint(2, 5)):
        values += [name for name, _ in body[-1:] if name not in values]
        first, other = (draw.choice(values) for _ in range(2))
        kind = draw.choice(["unary", "binary", "binary", "product", "row", "number"])
        text = {
            "unary": draw.choice(_UNARY).format(f"({first})"),
            "binary": draw.choice(_BINARY).format(first, other),
            "product": f"({first} * 0.1).to(tw.bf16) @ w",
            "row": f"{first} * (1.0 / N) + tw.row_sum(tw.tanh({other})) * (0.5 / N)",
            "number": f"tw.where(tw.row_index(1) + t < {draw.randint(1, 9)}, {first}, 0.25)",
        }[kind]
        body.append((f"v{step}", text))
    lines += [f"        {name} = {text}" for name, text in body]
    values = list(dict.fromkeys([*values, *(name for name, _ in body)]))
    made = [name for name in values if name[0] in "cdv"]
    lines += [f"        {each} = {carries[0]}" for each in lagging]
    for each in carries:
        lines.append(f"        {each} = tw.minimum({draw.choice(made)} * 0.5, 8.0)")
    lines.append(f"        tw.store_tile(Y[t], {draw.choice([*carries, *lagging, made[-1]])})")
    lines.append(f"    tw.store_tile(E, {carries[-1]})")
    signature = "X[T, M, N], Z[M, T, N], W[N, N], S[M, N] -> Y[T, M, N]: fp32, E[M, N]: fp32"
    if points:
        signature = re.sub(r"([XZSYE])\[", r"\1[G, ", signature)
        inside = [re.sub(r"\b([XZYE])\[", r"\1[g, ", each) for each in lines[2:]]
        inside = [re.sub(r"\(([SE])([,)])", r"(\1[g]\2", each) for each in inside]
        head = [lines[0], "    G, T, M, N = X.shape", "    for g in tw.each(G):"]
        lines = head + [f"    {each}" for each in inside]
    text = "\n".join(lines) + "\n"
    file = f"carries-{number}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"tw": tw}
    exec(compile(text, file, "exec"), scope)
    sizes = {"T": draw.choice([1, 3, 9, 12]), "M": draw.randint(1, 20), "N": 8 * draw.randint(1, 5)}
    sizes |= {"G": points} if points else {}
    return text, tw.kernel(signature)(scope["drawn"]), sizes
