"""YAML read without trust: composed into nodes, never constructed, and never too deep.

No tag is obeyed, an alias bomb stays a handful of shared nodes, and `title: 2024` or `tags: [yes]`
stay the words the author wrote.
"""

import re
from typing import Any, cast

import yaml

MAX_VALUES = 1_000
MAX_DEPTH = 6
MAX_NESTING = 200
"""libyaml's composer recurses in C and crashes the process: it is never given more than this."""

_BRACKET = re.compile(r"[\[\]{}]")
_DEEP_BLOCK = re.compile(rf"^(?:[ \t]|[-?:][ \t]){{{MAX_NESTING}}}", re.MULTILINE)


def compose(block: str) -> tuple[yaml.Node | None, str]:
    """The block's node, or why there is none."""
    if _too_deep(block):
        return None, f"nested deeper than {MAX_NESTING}"
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # The stubs leave compose untyped.
        return cast(yaml.Node | None, yaml.compose(block, Loader=loader)), ""  # pyright: ignore[reportUnknownMemberType]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return None, f"bad YAML ({_first_line(error)})"


def _too_deep(block: str) -> bool:
    if _DEEP_BLOCK.search(block):
        return True
    if block.count("[") + block.count("{") <= MAX_NESTING:
        return False
    depth = 0
    for bracket in _BRACKET.findall(block):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_NESTING:
            return True
    return False


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 2}" if mark is not None else ""
    return f"{str(problem).splitlines()[0] if problem else type(error).__name__}{where}"


def node_texts(node: yaml.Node) -> tuple[list[str], bool]:
    """The scalars below a node, in order and boundedly many (aliases may make it endless), and
    whether there were tables among them, which are left out.
    """
    texts: list[str] = []
    has_tables = False
    pending: list[tuple[Any, int]] = [(node, 0)]
    visits = 0
    while pending and visits < MAX_VALUES:
        visits += 1
        item, depth = pending.pop()
        if isinstance(item, yaml.ScalarNode):
            texts.append(str(item.value))
        elif isinstance(item, yaml.SequenceNode) and depth < MAX_DEPTH:
            pending.extend((child, depth + 1) for child in reversed(item.value[:MAX_VALUES]))
        has_tables |= isinstance(item, yaml.MappingNode)
    return texts, has_tables
