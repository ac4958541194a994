"""Interrupts that arrive while Python frees an object."""

import signal
import time

import pytest

import tilewright as tw
from sim.interrupt import interruptible
from sim.run.job import Problem
from sw.kernels.matmul import matmul


@pytest.fixture(autouse=True)
def handler():
    """Python's own handler, whatever this process was started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Freed:
    """Is interrupted in its finalizer, where Python ignores exceptions."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def free_and_wait(*_):
    Freed()
    begin = time.monotonic()
    try:
        time.sleep(60)
    finally:
        assert time.monotonic() - begin < 30, "a thread that waits must be woken"


def test_an_interrupt_in_a_finalizer_arrives_after_it():
    with pytest.raises(KeyboardInterrupt), interruptible():
        free_and_wait()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_call_of_the_api_is_interrupted_in_a_finalizer(monkeypatch):
    monkeypatch.setattr(Problem, "compile", free_and_wait)
    with pytest.raises(KeyboardInterrupt):
        matmul.compile("tiny", M=4, N=4, K=4, dtype=tw.bf16, progress=False)
