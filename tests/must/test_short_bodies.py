"""attn-j: bodies of attention and of a decoder layer are short, and compile in seconds."""

import ast
import time
from pathlib import Path

import pytest

import tilewright as tw
from sw.kernels.decoder_layer import decoder_layer
from sw.kernels.flash_attention import flash_attention
from tests.sim.run.test_token_by_token import LLAMA, model

KERNELS = Path(__file__).resolve().parents[2] / "sw" / "kernels"
LAYERS = 2


def lines(file, *names):
    """Lines of code of functions of a file, without decorators, docstrings and blank lines."""
    text = Path(file).read_text().splitlines()
    count = 0
    for node in ast.parse("\n".join(text)).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            told = node.body[0] if ast.get_docstring(node) else None
            skipped = range(told.lineno, told.end_lineno + 1) if told else ()
            numbers = range(node.lineno, node.end_lineno + 1)
            count += sum(bool(text[n - 1].strip()) for n in numbers if n not in skipped)
            names = [each for each in names if each != node.name]
    assert not names, names
    return count


@pytest.mark.must("attn-j", goal="bodies: flash_attention with helper <= 32, decoder layer <= 60")
def test_bodies_are_short(figure):
    attention = lines(KERNELS / "flash_attention.py", "attend", "flash_attention")
    names = ("_normed", "_turned", "layer", "decoder_layer")
    decoder = lines(KERNELS / "decoder_layer.py", *names)
    figure(f"flash_attention with helper {attention} lines, decoder layer {decoder}")
    assert attention <= 32 and decoder <= 60


@pytest.mark.slow
@pytest.mark.must("attn-j", goal="compile of attention <= 10 s, of the decoder layer <= 30 s (CPU)")
@pytest.mark.parametrize(
    ("kernel", "config", "sizes", "most"),
    [
        (flash_attention, "small", {"H": 1, "G": 1, "M": 1024, "S": 1024, "D": 128}, 10),
        (flash_attention, "large", {"H": 1, "G": 1, "M": 1024, "S": 1024, "D": 128}, 10),
        (decoder_layer, "small", {"S": 64} | LLAMA, 30),
        (model, "small", {"S": 64, "L": LAYERS} | LLAMA, 30),
    ],
    ids=["attention-small", "attention-large", "layer", "layers"],
)
def test_compiling_takes_seconds(kernel, config, sizes, most, heavy, figure):
    begin = time.process_time()
    kernel.compile(config, **sizes, dtype=tw.bf16)
    seconds = time.process_time() - begin
    figure(f"{kernel.name} on {config}: {seconds:.1f} s")
    assert seconds <= most
