"""Reduction of random programs: fewer lines, smaller sizes, a plain chip, no schedule."""

import re

__all__ = ["cleaned", "smaller_source"]

_ASSIGNED = re.compile(r"^(\w+(?:, \w+)*) (\+?)= (.*)$")
_NAME = re.compile(r"\b[a-z]\w*\b")
#: Accesses of the tensor that is updated in place, whose order stays.
_READ, _UPDATED = "tw.load_tile(T[", "tw.store_tile(T["
#: Lines of the decorator and of the definition.
_HEAD = 2


def depth(line):
    return len(line) - len(line.lstrip())


def replaced(text, name, value):
    """The text with a value in the place of a name; an expression is in parentheses."""
    value = value if re.fullmatch(r"\w+", value) else f"({value})"
    return re.sub(rf"\b{name}\b", lambda _: value, text)


def body_end(lines, at):
    """The first line behind the body of a loop."""
    end = at + 1
    while end < len(lines) and depth(lines[end]) > depth(lines[at]):
        end += 1
    return end


def without_dead(lines):
    """The lines on which what is stored depends."""
    live, names = set(), set()
    while True:
        before = len(live)
        for at in reversed(range(_HEAD, len(lines))):
            text = lines[at].strip()
            found = _ASSIGNED.match(text)
            if text.startswith("for "):
                needed = any(each in live for each in range(at, body_end(lines, at)))
            else:
                needed = not found or bool(names & set(found[1].split(", ")))
            if needed:
                live.add(at)
                names |= set(_NAME.findall(text if not found or found[2] else found[3]))
        if len(live) == before:
            return [line for at, line in enumerate(lines) if at < _HEAD or at in live]


def inlined(lines):
    """The lines without names that one line reads once."""
    for at in range(_HEAD, len(lines)):
        found = _ASSIGNED.match(lines[at].strip())
        if not found or found[2] or "," in found[1]:
            continue
        name = found[1]
        others = [each for each in range(_HEAD, len(lines)) if each != at]
        uses = [each for each in others if re.search(rf"\b{name}\b", lines[each])]
        if len(uses) != 1 or len(re.findall(rf"\b{name}\b", lines[uses[0]])) != 1:
            continue
        (use,) = uses
        if _ASSIGNED.match(lines[use].strip()) and f"{name} += " in lines[use]:
            continue
        between = any(_UPDATED in each for each in lines[at:use])
        if _READ in found[3] and between:
            continue
        if use > at and depth(lines[use]) == depth(lines[at]):
            line = replaced(lines[use], name, found[3])
            return inlined([*lines[:at], *lines[at + 1 : use], line, *lines[use + 1 :]])
    return lines


def cleaned(lines):
    """Lines without what is not needed."""
    return inlined(without_dead(lines))


def _without_sum(lines, at):
    """Lines with one term, over the whole extent, in the place of a loop that adds terms to a sum.

    The loop is behind the line with the sum's start.
    """
    found = _ASSIGNED.match(lines[at + 1].strip())
    if found and found[2] and body_end(lines, at) == at + 2:
        index = lines[at].split()[1]
        whole = "0" if "tw.each(" in lines[at] else ":"
        term = re.sub(rf"\b{index}\b", whole, found[3])
        indent = " " * depth(lines[at])
        inner = re.fullmatch(r"\((.*)\)\.to\(.*?\) @ .*", term)
        for each in (term, inner and inner[1]):
            if each:
                yield [*lines[: at - 1], f"{indent}{found[1]} = {each}", *lines[at + 2 :]]


def _shorter(lines):
    """Lines with another value stored, or without one operation."""
    assigned = [
        (at, found[1], found[3])
        for at in range(_HEAD, len(lines))
        if (found := _ASSIGNED.match(lines[at].strip())) and not found[2]
    ]
    stores = [at for at, line in enumerate(lines) if line.strip().startswith("tw.store_tile(")]
    for at in stores:
        head, _, value = lines[at].partition("], ")
        for _, names, _ in assigned:
            for name in names.split(", "):
                if f"{name})" != value:
                    yield [*lines[:at], f"{head}], {name})", *lines[at + 1 :]]
    for at in range(_HEAD, len(lines)):
        if lines[at].strip().startswith("for "):
            yield [*lines[:at], *lines[body_end(lines, at) :]]
            yield from _without_sum(lines, at)
            index = lines[at].split()[1]
            if "tw.each(" in lines[at]:
                body = (line[4:] for line in lines[at + 1 : body_end(lines, at)])
                plain = [replaced(line, index, "0") for line in body]
                yield [*lines[:at], *plain, *lines[body_end(lines, at) :]]
        elif "+=" in lines[at]:
            yield [*lines[:at], *lines[at + 1 :]]
    tiles = {name for _, names, _ in assigned for name in names.split(", ")}
    for at, names, value in assigned:
        for name in dict.fromkeys(_NAME.findall(value)):
            if name in tiles and "," not in names:
                rest = [replaced(line, names, name) for line in lines[at + 1 :]]
                yield [*lines[:at], *rest]


def smaller_source(fields):
    """Programs that are simpler in one respect, those of fewer lines first."""
    seen = {tuple(fields["lines"])}
    for lines in (fields["lines"], *_shorter(fields["lines"])):
        short = cleaned(lines)
        if tuple(short) not in seen and len(short) <= len(fields["lines"]):
            seen.add(tuple(short))
            yield {**fields, "lines": short}
    if fields["schedule"]:
        yield {**fields, "schedule": {}}
    if fields["chip"] not in ("small", "tiny"):
        yield {**fields, "chip": "small"}
    if fields["dims"]["D"] != fields["dims"]["F"]:
        yield {**fields, "dims": {**fields["dims"], "F": fields["dims"]["D"]}}
    for name, size in fields["dims"].items():
        for less in dict.fromkeys((1, size // 2, size - 1)):
            if 0 < less < size:
                yield {**fields, "dims": {**fields["dims"], name: less}}
