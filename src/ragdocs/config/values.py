"""The types of setting values: paths, patterns, names; and the base model of all sections."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ragdocs.errors import QueryError
from ragdocs.filter_language import parse_filter

AUTO = "auto"
_PATH_STARTS = ("/", "./", "../", "~", *(f"{dots}{os.sep}" for dots in (".", "..")))
MAX_TREE_NAME = 100
MAX_TREES = 500
MAX_PATTERNS = 2000
"""The same limit as for an ignore file: each file is compared with each pattern."""
MAX_PREFIX = 2000
"""In characters: a prefix is put before every passage."""
SHORTEST_PAUSE = 10.0
"""The shortest rescan interval, in seconds, that a project file may set without trust."""
DEVICES = (AUTO, "cpu", "mps", "cuda")
SETTING_ERROR = "setting"
"""The type of the errors below: their message can be shown to the user as it is."""
CROSS_ERROR = "settings_disagree"
"""The type of an error between settings: its context carries the `Disagreement`s."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Settings of one section that contradict each other."""

    why: str
    keys: tuple[str, ...]


Asks = Callable[[object, object, Path], bool]
"""Whether a value in a project file asks for trust: gets the value, the value that would be in
force without the file, and the project's folder."""


def differs(value: object, otherwise: object, _project: Path) -> bool:
    return value != otherwise


def is_more(value: object, otherwise: object, _project: Path) -> bool:
    return isinstance(value, int) and isinstance(otherwise, int) and value > otherwise


def is_hasty(value: object, otherwise: object, _project: Path) -> bool:
    """An interval so short that scanning never ends; 0 means never."""
    return value != otherwise and isinstance(value, int | float) and 0 < value < SHORTEST_PAUSE


def leaves_project(value: object, otherwise: object, project: Path) -> bool:
    """Outside the project's folder, or in a hidden folder inside it such as `.git`, which git and
    other tools write, not the project. Links in `value` are already resolved."""
    path = _folder_named(value)
    if path is None or value == otherwise:
        return False
    if not path.is_relative_to(project):
        return True
    return any(part.startswith(".") for part in path.relative_to(project).parts)


def _folder_named(value: object) -> Path | None:
    """The path of a folder setting or of a tree's table."""
    if isinstance(value, Mapping):
        value = cast("Mapping[str, object]", value).get("path")
    return value if isinstance(value, Path) else None


@dataclass(frozen=True, slots=True)
class Authority:
    """What a setting lets its author do to the user: a project file needs trust for it.

    `meaning` completes "this setting ..."; `when` names the values that ask for trust, if not every
    different value does. `is_loaded`: files of the project may be loaded because of it.
    """

    meaning: str
    asks: Asks = differs
    when: str = ""
    is_loaded: bool = False


def setting(
    default: object,
    description: str,
    *,
    least: float | None = None,
    most: float | None = None,
    aliases: tuple[str, ...] = (),
    allowed: str = "",
    authority: Authority | None = None,
) -> Any:  # noqa: ANN401  a field of any type
    """A setting with its range, its full keys in the seeds, and what it lets its author do to the
    user."""
    extra: dict[str, Any] = {"aliases": list(aliases), "allowed": allowed, "authority": authority}
    return Field(
        default=default, description=description, ge=least, le=most, json_schema_extra=extra
    )


def absolute(text: str, base: Path) -> Path:
    """`text` as a path relative to `base`, with `~` expanded and links resolved.

    Raises:
        ValueError: it cannot be a path.
    """
    if "\0" in text:
        raise ValueError("a path cannot contain a NUL character")
    try:
        path = base / Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"the home folder in {text!r} is not known") from None
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links: discovery will report that it cannot be read
        return Path(os.path.abspath(path))


def _context(info: ValidationInfo) -> Mapping[str, object]:
    return cast("Mapping[str, object]", info.context or {})


def _path(value: object, info: ValidationInfo) -> object:
    base = _context(info).get("base")
    if not isinstance(value, str | Path) or not isinstance(base, Path):
        return value
    try:
        return absolute(str(value), base)
    except ValueError as error:
        raise PydanticCustomError(SETTING_ERROR, "{why}", {"why": str(error)}) from error


def _path_or_nothing(value: object, info: ValidationInfo) -> object:
    return None if value == "" else _path(value, info)


def _name_or_path(value: object, info: ValidationInfo) -> object:
    """A model's name looks like a relative path, so only an explicit path is resolved."""
    if isinstance(value, str) and (value.startswith(_PATH_STARTS) or os.path.isabs(value)):
        return str(_path(value, info))
    return value


def _document_or_path(value: object, info: ValidationInfo) -> object:
    """`tree:path` stays; anything else is a file relative to the configuration's folder."""
    is_on_drive = isinstance(value, str) and bool(os.path.splitdrive(value)[0])  # on Windows
    if isinstance(value, str) and is_tree_name(value.partition(":")[0]) and ":" in value:
        return str(_path(value, info)) if is_on_drive else value
    return str(_path(value, info)) if isinstance(value, str) else value


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def is_tree_name(name: str) -> bool:
    """Letters, digits, `-`, `_` and `.`: every id starts with the tree's name and a `:`."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    return plain.isalnum() and name[0] not in "-." and len(name) <= MAX_TREE_NAME


def _tree_name(name: str) -> str:
    if not is_tree_name(name):
        raise PydanticCustomError(
            SETTING_ERROR, "a tree name has only letters, digits, '-', '_' and '.'"
        )
    return name


def _pattern(value: str) -> str:
    if not value.strip() or "\0" in value or "\n" in value:
        raise PydanticCustomError(SETTING_ERROR, "a pattern cannot be empty or span lines")
    return value


def _model_file(value: str) -> str:
    parts = value.split("/")
    is_inside = ".." not in parts and "" not in parts and "\\" not in value and ":" not in value
    if value == AUTO or (is_inside and value.endswith(".onnx")):
        return value
    raise PydanticCustomError(SETTING_ERROR, "it is not an .onnx file in the model folder")


def _device(value: str) -> str:
    name, colon, number = value.partition(":")
    if name not in DEVICES or (colon and not (name == "cuda" and number.isdecimal())):
        raise PydanticCustomError(SETTING_ERROR, "there is no such device")
    return value


LINK_FORMATS = {
    "file": "file://{host}{path}",
    "obsidian": "obsidian://open?path={path}",
    "vscode": "vscode://file{path}:{line}",
    "vscode-insiders": "vscode-insiders://file{path}:{line}",
    "vscodium": "vscodium://file{path}:{line}",
    "cursor": "cursor://file{path}:{line}",
    "windsurf": "windsurf://file{path}:{line}",
    "zed": "zed://file{path}:{line}",
    "idea": "idea://open?file={path}&line={line}",
    "sublime": "subl://open?url=file://{path}&line={line}",
    "textmate": "txmt://open?url=file://{path}&line={line}",
    "macvim": "mvim://open?url=file://{path}&line={line}",
}
"""The address of a line of a file, for the programs that register one."""
NO_LINKS = "off"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]*")
"""A scheme and visible ASCII: anything else could end the terminal's sequence."""


def _link_format(value: str) -> str:
    is_address = _ADDRESS.fullmatch(value) and "{path}" in value
    if value in (AUTO, NO_LINKS, *LINK_FORMATS) or is_address:
        return value
    raise PydanticCustomError(SETTING_ERROR, "it is neither a known program nor an address")


def _filter_text(value: str) -> str:
    try:
        parse_filter(value)
    except QueryError as error:
        raise PydanticCustomError(SETTING_ERROR, "{problem}", {"problem": str(error)}) from None
    return value


# Strict models reject a list for a tuple and a string for an enum, but TOML has nothing else.
Lax = Field(strict=False)
Folder = Annotated[Path, BeforeValidator(_path)]
OptionalFolder = Annotated[Path | None, BeforeValidator(_path_or_nothing)]
NameOrFolder = Annotated[str, BeforeValidator(_name_or_path), Field(min_length=1)]
Device = Annotated[str, AfterValidator(_device)]
Patterns = Annotated[
    tuple[Annotated[str, AfterValidator(_pattern)], ...], Lax, Field(max_length=MAX_PATTERNS)
]
PatternOrPatterns = Annotated[
    tuple[Annotated[str, AfterValidator(_pattern)], ...],
    Lax,
    BeforeValidator(_as_tuple),
    Field(max_length=MAX_PATTERNS),
]
Prefix = Annotated[str, Field(max_length=MAX_PREFIX)]
LinkFormat = Annotated[str, AfterValidator(_link_format)]
ModelFile = Annotated[str, AfterValidator(_model_file)]
Strings = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Lax]
Inclusions = Annotated[tuple[Annotated[str, BeforeValidator(_document_or_path)], ...], Lax]
FilterText = Annotated[str, AfterValidator(_filter_text)]
TreeKey = Annotated[str, AfterValidator(_tree_name)]


class SettingsSection(BaseModel):
    """Base of all sections: frozen, no unknown keys, no type coercion, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_agreement(self, info: ValidationInfo) -> Self:
        # One file may set the minimum and another the maximum: only the merged whole can disagree.
        found = () if _context(info).get("partial") else tuple(self.disagreements())
        if found:
            reasons = "; ".join(one.why for one in found)
            raise PydanticCustomError(
                CROSS_ERROR, "{reasons}", {"reasons": reasons, "disagreements": found}
            )
        return self

    def disagreements(self) -> Iterator[Disagreement]:
        """Settings that must agree with each other, and do not."""
        return iter(())

    def in_order(self, low: str, high: str) -> Iterator[Disagreement]:
        if getattr(self, low) > getattr(self, high):
            yield Disagreement(f"{low} must not be greater than {high}", (low, high))
