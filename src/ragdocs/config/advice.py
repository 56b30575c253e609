"""What is allowed but probably not meant: `check-config` says it, nothing else minds."""

from collections.abc import Iterator
from pathlib import Path

from ragdocs.config.catalogue import key_text, settings
from ragdocs.config.notation import printable, toml_value
from ragdocs.config.problems import Origin, OriginKind, Problem
from ragdocs.config.resolved import DEFAULT_TREE, DOCUMENTS_PATH, Config, Tree
from ragdocs.config.sections import NEEDS, Need

_DOCUMENTS = key_text(DOCUMENTS_PATH)
_CALIBRATION = "search.score_calibration_threshold"
_CALIBRATION_SETTINGS = (_CALIBRATION, "search.score_calibration_steepness")
_SMALLEST_EVIDENCE = 0.1
"""Even a query that nothing answers has more: the earlier systems' 0.035 was a sum of ranks."""


def advise(config: Config) -> Iterator[Problem]:
    yield from _missing_folders(config)
    yield from _overlaps(config)
    yield from _idle_documents_path(config)
    yield from _unknown_trees(config)
    yield from _old_calibration(config)
    yield from _idle_settings(config)


def _idle_settings(config: Config) -> Iterator[Problem]:
    """What is set to another value than usual and has no effect, with what takes it away."""
    for key, needs in NEEDS.items():
        unmet = next((need for need in needs if not _is_met(config, need)), None)
        origin = _given_at(config, key)
        if unmet is not None and origin is not None and not _is_usual(config, key):
            values = (f"{other} = {toml_value(config.value_of(other))}" for other in unmet.keys)
            why = unmet.words or "while " + " and ".join(values)
            still = f", except that {unmet.still}" if unmet.still else ""
            yield Problem(origin, key, f"has no effect {why}{still}")


def _is_met(config: Config, need: Need) -> bool:
    return need.is_met(*(config.value_of(key) for key in need.keys))


def _is_usual(config: Config, key: str) -> bool:
    """Whoever writes a default down expects nothing of it."""
    return config.value_of(key) == settings()[tuple(key.split("."))].default


def _given_at(config: Config, key: str) -> Origin | None:
    """Where the user has set it, or a key of the table that it is; None: nowhere."""
    inside = (one for at, one in config.origins.items() if at.startswith(f"{key}."))
    every = (config.origins[key], *inside)
    return next((one for one in every if one.kind is not OriginKind.DEFAULT), None)


def _about(config: Config, tree: Tree, message: str) -> Problem:
    key = f"tree.{tree.name}"
    key = key if key in config.origins else _DOCUMENTS
    return Problem(config.tree_origin(tree), key, message)


def _missing_folders(config: Config) -> Iterator[Problem]:
    for tree in config.trees:
        try:
            is_folder = tree.root.is_dir()
        except OSError:
            is_folder = False
        if not is_folder:
            shown = printable(str(tree.root))
            yield _about(config, tree, f"{shown} is not a folder, or cannot be looked into")


def _overlaps(config: Config) -> Iterator[Problem]:
    """Each tree with the first that has the same folder, and with those that have one above it."""
    first_at: dict[Path, int] = {}
    for number, tree in enumerate(config.trees):
        first_at.setdefault(tree.root, number)
    pairs = {
        tuple(sorted((number, first_at[folder])))
        for number, tree in enumerate(config.trees)
        for folder in (tree.root, *tree.root.parents)
        if first_at.get(folder, number) != number
    }
    for one, other in sorted(pairs):
        name = config.trees[one].name
        message = f"shares a folder with tree {name}: files in both are indexed twice"
        yield _about(config, config.trees[other], message)


def _idle_documents_path(config: Config) -> Iterator[Problem]:
    origin = config.origins[_DOCUMENTS]
    if origin.kind is not OriginKind.DEFAULT and f"tree.{DEFAULT_TREE}" in config.origins:
        yield Problem(origin, _DOCUMENTS, f"has no effect beside [tree.{DEFAULT_TREE}]")


def _unknown_trees(config: Config) -> Iterator[Problem]:
    known = {str(tree.name) for tree in config.trees}
    for number, rule in enumerate(config.context.rules):
        for name in sorted(set(rule.trees) - known):
            origin = config.origins["context.rules"]
            key = f"context.rules[{number}].trees"
            yield Problem(origin, key, f"there is no tree {printable(name)} here")


def _old_calibration(config: Config) -> Iterator[Problem]:
    curve = config.search.rank_sum_curve
    if curve is not None:
        for key in _CALIBRATION_SETTINGS:
            if origin := _given_at(config, key):
                message = f"with rank fusion confidence is made from the {curve.words}"
                yield Problem(origin, key, message)
    elif config.search.score_calibration_threshold < _SMALLEST_EVIDENCE:
        message = (
            "is on the scale of rank sums: here evidence runs from 0 to 1, and every result would "
            'look certain; leave the setting out, or set fusion = "rrf"'
        )
        yield Problem(config.origins[_CALIBRATION], _CALIBRATION, message)
