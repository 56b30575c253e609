"""The example file and the reference page, made from the models so that they cannot differ."""

import re
import textwrap
from collections.abc import Iterable, Iterator

from ragdocs.config.problems import (
    ANY,
    OriginKind,
    Setting,
    SettingOrigin,
    Table,
    aliases,
    key_text,
    tables,
    unknown,
)
from ragdocs.config.resolved import DEFAULT_TREE
from ragdocs.text import plain_value, toml_value

_ARRAY_NAME = re.compile(r"\[\[[a-z.]+\]\]")
_WIDTH = 98
_FOR_EXAMPLE = {"path": '"."', "match": '"src/api/**"'}
"""What the example file says where there is no default."""

_EXAMPLE_HEAD = """\
# Configuration of mcp-markdown-ragdocs: every setting with its default. Take away the `#` before a
# line to change it. Copy this file to `.mcp-markdown-ragdocs/config.toml` or `.ragdocs.toml` in a
# project, or to `~/.config/mcp-markdown-ragdocs/config.toml` for all of them; nearer files win,
# key by key. `ragdocs check-config` says what is wrong with it, `ragdocs config` what is in force.
# What a project's file may set only after `ragdocs trust` is marked.
#
# Made by scripts/generate_config_docs.py from the settings' definitions: do not edit.
"""

_PAGE_HEAD = """\
# Configuration

<!-- Made by scripts/generate_config_docs.py from the settings' definitions: do not edit. -->

Nothing has to be configured: without a file, the working directory's Markdown is indexed. This
page lists every setting; [`config.example.toml`](../config.example.toml) is the same as a file.
Settings of parts that are still being built are checked like all others and have no effect yet.

## Where settings come from

The strongest first; each gives only the keys that it names:

1. **Flags** of the command line. A flag that names documents means exactly those.
2. **Environment variables** `RAGDOCS_SECTION__KEY`, for example
   `RAGDOCS_SEARCH__MIN_CONFIDENCE=0.5` or `RAGDOCS_SEARCH__ADVANCED__HYDE_ENABLED=false`. The value
   is written as in TOML (a list is `'["a", "b"]'`); a bare word is a string. A tree is one value,
   `RAGDOCS_TREE__NOTES='{ path = "notes" }'`, and its name is then in small letters.
3. **Project files**: `.mcp-markdown-ragdocs/config.toml` or `.ragdocs.toml` (one of the two) in the
   working directory, then in each folder above it, until a file says `root = true`. With `--docs`
   they are looked for from those documents upwards (from their common folder, if there are
   several): a project in the working directory does not govern documents elsewhere.
4. **The user's file**: `$XDG_CONFIG_HOME/mcp-markdown-ragdocs/config.toml`, by default under
   `~/.config`; on a Mac under `~/Library/Application Support` unless it is there already, on
   Windows under `%APPDATA%`.

With `--config FILE` that file alone is read in place of 3 and 4; with `--config DIR`, project files
are looked for from that folder upwards. Nearer files win key by key; lists are not joined, and a
`[tree.NAME]` table replaces one of the same name as a whole.

Relative paths are seen from the folder that a file speaks for: the one that contains
`.mcp-markdown-ragdocs` or `.ragdocs.toml`, and for the user's file its own. In variables and flags
they are seen from the working directory. `~` is the home folder.

## Trust

A project's file may come from whoever wrote the project. Settings that choose what code or model is
loaded, where text is sent or written, or which folders outside of the project are read are marked
below. In a project's file they are ignored until you say `ragdocs trust`, which shows what the file
asks for. Everything else in the file works, and what is ignored is said by every command, by
`status`, `doctor`, `check-config` and `config`, and in the answers of the MCP server.

- A value that is in force without the file anyway asks for nothing.
- A path is judged by where it really leads: links, `..` and `~` are followed first. A hidden folder
  of the project (`.git`, `.venv`) counts as outside.
- A `[tree.NAME]` that is ignored is as if it were not written: one of the same name in a farther
  file stays, and without any tree the project's folder is searched.
- Flags, variables, your own file and a file that you name with `--config` are your own word.
- A file that belongs to another account is not read, unless that account owns the folder you work
  in, or is root.

[Security](security.md) has the rest: what is remembered, where, and how to take it back.

## Trees

A tree is a folder of documents with a name (letters, digits, `-`, `_`, `.`), which begins the ids
of its documents. Trees in the user's file are global, all others are local to the project. Without
any `[tree.NAME]`, and whenever `documents_path` is set, there is the tree `docs` at
`documents_path`; that is, unless set, the folder of the nearest project file, or else the working
directory.

`include` of `[indexing]` serves every tree that has none of its own; `exclude` of `[indexing]` is
added to that of every tree. For your own trees, those of your own file count, not a project's.

## Settings without effect

Some settings act only beside others: `rrf_k_constant` with `fusion = "rrf"`, `mmr_lambda` with
`mmr_enabled`, `child_chunk_max_chars` with `parent_retrieval_enabled`. `check-config` (also with
`--json`) and `doctor` name each one that you have set and that has no effect, with what takes it
away; not where you have written its default down. The configuration can be used all the same.

## Mistakes

An unknown key, a value of the wrong type or out of its range, and settings that contradict each
other are errors. All are reported at once, with file, line, key, what is allowed and the nearest
known name:

```text
{mistake}
```
"""


def example_file() -> str:
    """A file that changes nothing, and still nothing with every `#key` uncommented."""
    return "\n".join(_example_lines()).rstrip() + "\n"


def reference_page() -> str:
    mistake = unknown(
        ("chunking", "max_leaf_char"), SettingOrigin(OriginKind.PROJECT, ".ragdocs.toml", 2)
    )
    head = _PAGE_HEAD.replace("{mistake}", "\n".join(textwrap.wrap(str(mistake), _WIDTH)))
    return "\n".join([head, "## Settings\n", *map(_page_table, tables()), _page_aliases()])


def _example_lines() -> Iterator[str]:
    yield _EXAMPLE_HEAD
    for table in tables():
        is_rule = table.path[:2] == ("context", "rules")
        yield from _comment(table.description if table.path else "")
        if table.path:
            header = table.header.replace("NAME", DEFAULT_TREE)
            # A tree or rule that is written down is one, so those headers stay commented out; and
            # a rule has no default to agree with, so it is shown as prose.
            yield f"#   {header}" if is_rule else f"#{header}" if ANY in table.path else header
        for one in table.settings:
            yield from _example_setting(one, "#   " if is_rule else "#")
        yield ""


def _example_setting(one: Setting, mark: str) -> Iterator[str]:
    if one.path == ("context", "rules"):
        return
    yield from _comment(f"{one.description} ({one.allowed}){_trust(one, 'trust')}")
    yield f"{mark}{one.name} = {_example_value(one)}"


def _example_value(one: Setting) -> str:
    if one.required:
        return _FOR_EXAMPLE[one.name]
    inherits = one.path == ("tree", ANY, "include")
    source = next(t for t in tables() if t.path == ("indexing",)).settings if inherits else (one,)
    value = next(setting for setting in source if setting.name == one.name).default
    return toml_value(value)


def _comment(text: str) -> Iterable[str]:
    return [f"# {line}" for line in textwrap.wrap(" ".join(text.split()), _WIDTH)]


def _page_table(table: Table) -> str:
    title = f"### `{table.header}`" if table.path else "### Top level"
    rows = [
        f"| `{one.name}` | {_default(one)} | {_cell(one.allowed)} | {_cell(one.description)}"
        f"{_trust(one, '[trust](#trust)')} |"
        for one in table.settings
    ]
    head = ["| key | default | allowed | what it does |", "|---|---|---|---|"]
    about = "" if not table.path else f"{' '.join(table.description.split())}\n"
    return "\n".join(
        [title, "", about, *head, *rows, ""] if about else [title, "", *head, *rows, ""]
    )


def _trust(one: Setting, link: str) -> str:
    if one.authority is None:
        return ""
    when = f" if {one.authority.when}" if one.authority.when else ""
    return f" Needs {link} in a project's file{when}."


def _default(one: Setting) -> str:
    if one.required:
        return "required"
    if one.path == ("tree", ANY, "include"):
        return "of `[indexing]`"
    return f"`{toml_value(plain_value(one.default))}`".replace("|", "\\|")


def _cell(text: str) -> str:
    """Text for a table; the name of an array of tables would otherwise read as a wikilink."""
    return _ARRAY_NAME.sub(r"`\g<0>`", text).replace("|", "\\|")


def _page_aliases() -> str:
    rows = [f"| `{key_text(alias)}` | `{key_text(meant)}` |" for alias, meant in aliases().items()]
    return "\n".join(
        [
            "## Other names",
            "",
            "These are accepted, and `check-config` points them out. Both names of one setting in",
            "the same file are an error.",
            "",
            "| other name | name |",
            "|---|---|",
            *rows,
            "",
        ]
    )
