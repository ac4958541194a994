"""Put the ten slowest tests of the last run into docs/testing.md."""

import json
from pathlib import Path

from docs.tools.blocks import replaced

__all__ = ["main", "table"]

_ROOT = Path(__file__).resolve().parent.parent
_PAGE = _ROOT / "docs" / "testing.md"
_RECORD = _ROOT / "build" / "test-durations.json"


def table(seconds: dict[str, float]) -> str:
    """Markdown table of the ten slowest tests, and the time of all."""
    slowest = sorted(seconds.items(), key=lambda row: -row[1])[:10]
    lines = ["| test | seconds |", "|---|---:|"]
    lines += [f"| `{name}` | {value:.1f} |" for name, value in slowest]
    lines.append(f"| all {len(seconds)} tests, one after another | {sum(seconds.values()):.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite the marked part of the page."""
    if not _RECORD.exists():
        raise SystemExit("durations: no record of a run; run make test first")
    rows = table(json.loads(_RECORD.read_text()))
    _PAGE.write_text(replaced(_PAGE.read_text(), "durations", rows))
    print(rows, end="")


if __name__ == "__main__":
    main()
