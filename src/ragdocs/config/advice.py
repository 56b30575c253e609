"""What is allowed but probably not meant: `check-config` says it, nothing else minds."""

from collections.abc import Iterator
from pathlib import Path

from ragdocs.config.catalogue import key_text
from ragdocs.config.notation import printable
from ragdocs.config.problems import OriginKind, Problem
from ragdocs.config.resolved import DEFAULT_TREE, DOCUMENTS_PATH, Config, Tree

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


def is_given(config: Config, key: str) -> bool:
    return config.origins[key].kind is not OriginKind.DEFAULT


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
        given = (key for key in _CALIBRATION_SETTINGS if is_given(config, key))
        for key in given:
            message = f"with rank fusion confidence is made from the {curve.words}"
            yield Problem(config.origins[key], key, message)
    elif config.search.score_calibration_threshold < _SMALLEST_EVIDENCE:
        message = (
            "is on the scale of rank sums: here evidence runs from 0 to 1, and every result would "
            'look certain; leave the setting out, or set fusion = "rrf"'
        )
        yield Problem(config.origins[_CALIBRATION], _CALIBRATION, message)
