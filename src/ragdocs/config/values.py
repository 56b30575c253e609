"""What a setting's value may be: paths, patterns, names; and the model that all sections share."""

import os
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

AUTO = "auto"
_PATH_STARTS = ("/", "./", "../", "~", *(f"{dots}{os.sep}" for dots in (".", "..")))
MAX_TREE_NAME = 100
MAX_TREES = 500
MAX_PATTERNS = 2000
"""As many as an ignore file may have: each file is compared with each of them."""
MAX_PREFIX = 2000
"""Characters: a prefix is put before every passage."""
SHORTEST_PAUSE = 10.0
"""Seconds between two looks at all files, of those that a project's file may choose."""
DEVICES = (AUTO, "cpu", "mps", "cuda")
SETTING_ERROR = "setting"
"""The type of the errors below: their message is already fit for the user."""
CROSS_ERROR = "settings_disagree"
"""The type of an error between settings: its context carries the `Disagreement`s."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Settings of one section that cannot hold together."""

    why: str
    keys: tuple[str, ...]


Asks = Callable[[object, object, Path], bool]
"""Whether a value in a project's file asks for trust: the value, what would be in force without the
file, and the project's folder."""


def differs(value: object, otherwise: object, _project: Path) -> bool:
    return value != otherwise


def is_more(value: object, otherwise: object, _project: Path) -> bool:
    return isinstance(value, int) and isinstance(otherwise, int) and value > otherwise


def is_hasty(value: object, otherwise: object, _project: Path) -> bool:
    """A pause so short that the work after it never ends; 0 means never."""
    return value != otherwise and isinstance(value, int | float) and 0 < value < SHORTEST_PAUSE


def leaves_project(value: object, otherwise: object, project: Path) -> bool:
    """Outside of the project's folder, or in a hidden folder of it, as `.git`, which git and other
    tools write, not the project. Links are already followed in `value`."""
    path = _folder_named(value)
    if path is None or value == otherwise:
        return False
    if not path.is_relative_to(project):
        return True
    return any(part.startswith(".") for part in path.relative_to(project).parts)


def _folder_named(value: object) -> Path | None:
    """A folder's path, or that of a tree's table."""
    if isinstance(value, Mapping):
        value = cast("Mapping[str, object]", value).get("path")
    return value if isinstance(value, Path) else None


@dataclass(frozen=True, slots=True)
class Authority:
    """What a setting lets its writer do to the user: a project's file has it only when trusted.

    `meaning` completes "this setting ..."; `when` names the values that ask, where not all do that
    differ. `is_loaded`: files of the project may be loaded because of it.
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
    """A setting with its range, the other full keys that the seeds call it by, and what it lets its
    writer do to the user."""
    extra: dict[str, Any] = {"aliases": list(aliases), "allowed": allowed, "authority": authority}
    return Field(
        default=default, description=description, ge=least, le=most, json_schema_extra=extra
    )


def absolute(text: str, base: Path) -> Path:
    """`text` as a path with `~` expanded and links followed, seen from `base`.

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
    except (OSError, RuntimeError):  # a loop of links: discovery will say that it cannot be read
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
    """A model's name looks like a relative path, so only what is plainly a path is made one."""
    if isinstance(value, str) and (value.startswith(_PATH_STARTS) or os.path.isabs(value)):
        return str(_path(value, info))
    return value


def _document_or_path(value: object, info: ValidationInfo) -> object:
    """`tree:path` stays; anything else is a file, seen from the configuration's folder."""
    is_on_drive = isinstance(value, str) and bool(os.path.splitdrive(value)[0])  # on Windows
    if isinstance(value, str) and is_tree_name(value.partition(":")[0]) and ":" in value:
        return str(_path(value, info)) if is_on_drive else value
    return str(_path(value, info)) if isinstance(value, str) else value


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def is_tree_name(name: str) -> bool:
    """Letters, digits, `-`, `_` and `.`: a tree's name begins every id, up to the first `:`."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    return plain.isalnum() and name[0] not in "-." and len(name) <= MAX_TREE_NAME


def _tree_name(name: str) -> str:
    if not is_tree_name(name):
        raise PydanticCustomError(
            SETTING_ERROR, "a tree's name has only letters, digits, '-', '_' and '.'"
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
    raise PydanticCustomError(SETTING_ERROR, "it is no .onnx file of the model's folder")


def _device(value: str) -> str:
    name, colon, number = value.partition(":")
    if name not in DEVICES or (colon and not (name == "cuda" and number.isdecimal())):
        raise PydanticCustomError(SETTING_ERROR, "there is no such device")
    return value


# Strict models refuse a list for a tuple and a string for an enum, which is all that TOML has.
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
    BeforeValidator(_listed),
    Field(max_length=MAX_PATTERNS),
]
Prefix = Annotated[str, Field(max_length=MAX_PREFIX)]
ModelFile = Annotated[str, AfterValidator(_model_file)]
Strings = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Lax]
Inclusions = Annotated[tuple[Annotated[str, BeforeValidator(_document_or_path)], ...], Lax]
TreeKey = Annotated[str, AfterValidator(_tree_name)]


class SettingsSection(BaseModel):
    """What all sections share: frozen, no unknown key, no guessing of types, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _agrees(self, info: ValidationInfo) -> Self:
        # One file may give the minimum and another the maximum: only the merged whole can disagree.
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
