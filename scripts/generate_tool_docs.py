"""Writes docs/tools.md from the schemas of the MCP tools, and docs/limits.md from the limits.

python scripts/generate_tool_docs.py
"""

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from ragdocs import limits
from ragdocs.mcp_server.answer import OPTIONS, Schema, input_schema, parameters_of, schema_of
from ragdocs.mcp_server.tools import TOOLS, ToolKind

_HEAD = """# Tools

This page is generated from the schemas that a client is given (`make docs`). How the server
behaves is in [mcp.md](mcp.md). Every tool only reads. A parameter that is not listed is an error;
null means: not given. The parameters in `options` are also taken beside the others. Numbers, true
and false may be sent as text, and one value where a list is asked.
"""

_LIMITS_HEAD = """# Limits

This page is generated from `ragdocs/limits.py` (`make docs`). A request over a limit on what it
sends gets an error that names the limit. What an answer has no room for is left out, and the answer
says what. Limits on one document are in [parsing.md](parsing.md), limits on ignore files in
[trees.md](trees.md).
"""

_MAX_INLINE = 5
"""Parts of an object that are shown where its type is."""


def reference_page() -> str:
    return "\n".join([_HEAD, *(line for tool in TOOLS.values() for line in _tool(tool))])


def _tool(tool: ToolKind) -> Iterator[str]:
    yield f"## {tool.name}\n"
    yield f"{tool.description}\n"
    schema = input_schema(tool.arguments)
    parts = cast(dict[str, Schema], schema["properties"])
    hidden = {
        f"{OPTIONS}.{name}": part
        for name, part in parameters_of(tool.arguments).items()
        if name not in parts and not tool.arguments.options_as_in
    }
    if parts:
        yield "| parameter | type | default | meaning |"
        yield "|---|---|---|---|"
        yield from (
            _row(name, part, name in schema.get("required", ()))
            for name, part in (*parts.items(), *hidden.items())
        )
    else:
        yield "It takes no parameter."
    given = cast(dict[str, Schema], schema_of(tool.answer, "serialization")["properties"])
    yield f"\nIn the structured answer: {', '.join(f'`{name}`' for name in given)}.\n"


def _row(name: str, schema: Schema, is_required: bool) -> str:
    default = "required" if is_required else _default(schema)
    return f"| `{name}` | {_type(schema)} | {default} | {schema['description'].replace('|', '/')} |"


def _default(schema: Schema) -> str:
    value = schema.get("default", "")
    return f"`{json.dumps(value)}`" if value not in ("", []) else ""


def _type(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    match schema["type"]:
        case "string":
            return f"text, at most {schema['maxLength']:,}"
        case "integer" | "number":
            return f"{schema['minimum']:,} to {schema['maximum']:,}"
        case "array":
            return f"at most {schema['maxItems']} of ({_type(schema['items'])})"
        case "object":
            parts = cast(dict[str, Schema], schema.get("properties", {}))
            if "additionalProperties" not in schema or len(parts) > _MAX_INLINE:
                return "object"
            return ", ".join(f"`{name}`: {_type(part)}" for name, part in parts.items())
        case kind:
            return str(kind)


def limits_page() -> str:
    """A table for each heading of the module, in its order."""
    source = inspect.getsource(limits)
    headings = [
        (number, line.removeprefix("# "))
        for number, line in enumerate(source.splitlines(), start=1)
        if line.startswith("# ")
    ]
    lines = [_LIMITS_HEAD]
    for name, number, meaning in _limits(source):
        while headings and headings[0][0] < number:
            lines += [f"\n## {headings.pop(0)[1]}\n", "| limit | name | meaning |", "|--:|---|---|"]
        lines.append(f"| {getattr(limits, name):,} | `{name}` | {meaning} |")
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _limits(source: str) -> Iterator[tuple[str, int, str]]:
    """The name, line and sentence of each limit; the sentence is the string after its value."""
    body = ast.parse(source).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.Assign):
            continue
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        assert isinstance(after, ast.Expr), f"{target.id} has no sentence"
        assert isinstance(after.value, ast.Constant), f"{target.id} has no sentence"
        yield target.id, statement.lineno, str(after.value.value)


if __name__ == "__main__":
    docs = Path(__file__).resolve().parent.parent / "docs"
    (docs / "tools.md").write_text(reference_page(), encoding="utf-8")
    (docs / "limits.md").write_text(limits_page(), encoding="utf-8")
