"""``tilewright config``: every parameter and derived size of a configuration."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from sim.cli.options import Subparsers, add_json
from sim.rules import load_config

__all__ = ["add", "execute"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``config``."""
    parser = subparsers.add_parser(
        "config",
        help="print all parameters and derived sizes of a configuration",
        description="Print every parameter of a configuration and the sizes derived from them.",
    )
    parser.add_argument(
        "name", metavar="NAME|FILE", help="named configuration, TOML file, or FILE.py:NAME"
    )
    parser.add_argument(
        "--toml",
        action="store_true",
        help="print TOML for --config, with the derived sizes as comments (the default)",
    )
    add_json(parser)


def _toml(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """TOML lines of a table: its values, then its sub-tables; scalars are written as in JSON."""
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in table.items()
        if not isinstance(value, Mapping)
    ]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{prefix}{key}]", *_toml(value, f"{prefix}{key}.")]
    return lines


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Print the configuration as TOML, unless only JSON is requested; return it for the report."""
    resolved = load_config(args.name, where="NAME|FILE").resolved()
    if args.json and not args.toml:
        return resolved
    parameters = {key: value for key, value in resolved.items() if key != "derived"}
    parameters["agcu"] = dict(resolved["agcu"])
    # Derived from the link width, so a file that omits it can change the width alone.
    axi = {"axi_data_bits": parameters["agcu"].pop("axi_data_bits")}
    # Circuits are in a file of Python alone.
    pcu = dict(parameters["pcu"])
    units = {"functions": pcu.pop("functions")} if "functions" in pcu else {}
    parameters["pcu"] = pcu
    derived = {"derived": resolved["derived"]}
    comments = [f"# {line}".rstrip() for line in (*_toml(axi), *_toml(units), *_toml(derived))]
    print("\n".join([f"# Configuration {args.name}", *_toml(parameters), *comments]))
    return resolved
