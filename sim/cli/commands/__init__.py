"""Sub-commands, one module each; `sim.cli.app` dispatches to them.

A command's module has two functions. ``add(subparsers)`` registers its options and must not
import anything heavy, so that ``--help`` is quick. ``execute(args)`` does the work, prints the
human-readable output to standard output, and returns the fields it adds to the JSON report; it
raises a `hw.arch.errors.TilewrightError` for every exit code but 0.
"""
