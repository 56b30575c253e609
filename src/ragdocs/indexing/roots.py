"""Folders of documents that cannot be looked at: which, why, and in which words."""

import os
from collections.abc import Iterable

from ragdocs.config.resolved import Tree
from ragdocs.indexing.containment import is_behind_link
from ragdocs.indexing.scan import RootProblem


def root_problem(tree: Tree) -> str:
    """Why a tree cannot be looked at; empty when it can."""
    if tree.within and is_behind_link(tree.root):
        return RootProblem.LINKED.value
    try:
        with os.scandir(tree.root):
            return ""
    except FileNotFoundError:
        return RootProblem.MISSING.value
    except NotADirectoryError:
        return RootProblem.NOT_A_DIRECTORY.value
    except (OSError, ValueError):
        return RootProblem.UNREADABLE.value


def unseen_trees(trees: Iterable[Tree]) -> str:
    """In words; empty when all can be looked at."""
    found = [(tree.name, root_problem(tree)) for tree in trees]
    return in_words((name, problem) for name, problem in found if problem)


def in_words(unseen: Iterable[tuple[str, str]]) -> str:
    """Of trees and what is the matter with each."""
    said = [f"the folder of {tree} {problem}" for tree, problem in unseen]
    if not said:
        return ""
    which = "it" if len(said) == 1 else "them"
    return f"{'; '.join(said)}: what is indexed of {which} may be out of date"
