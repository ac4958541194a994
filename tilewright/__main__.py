"""``python -m tilewright``: the ``tilewright`` command."""

import sys

from tilewright import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
