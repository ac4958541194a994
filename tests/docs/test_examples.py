"""Python and shell of the pages: every block says what it is, and runs as it stands."""

from tests.docs.fences import fences

KINDS = {"python", "sh", "text"}
# A reader's first minutes; tests/must/test_documentation_true.py has blocks that build a chip.
SLOW = ("ChipModel", 'backend="rtl"')


def quick(fence):
    return not any(word in fence.text for word in SLOW)


def test_every_block_says_what_it_is():
    assert [str(fence) for fence in fences() if fence.kind not in KINDS] == []


def test_commands_and_python_are_no_text():
    # Marked as an illustration, an example would never run.
    starts = ("tilewright ", ".venv/bin/", "make ", "import ", "from ", "@tw.kernel")
    for fence in fences("text"):
        lines = fence.text.splitlines()
        assert not any(line.startswith(starts) for line in lines), str(fence)
