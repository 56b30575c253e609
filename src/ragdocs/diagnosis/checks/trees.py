"""Folders of documents: there, readable, not empty; and what is kept of those that are not."""

from collections.abc import Iterator

from ragdocs.config.resolved import Tree
from ragdocs.diagnosis.case import Case, at
from ragdocs.diagnosis.findings import Finding, Level
from ragdocs.diagnosis.store_look import StoreLook, look_at_store
from ragdocs.indexing.roots import root_problem
from ragdocs.wording import number_of


def check_trees(case: Case) -> Iterator[Finding]:
    look = look_at_store(case.directory, "")
    for tree in case.app.config.trees:
        yield _examined(tree, look)


def _examined(tree: Tree, look: StoreLook) -> Finding:
    name = f"{tree.name} ({at(tree.root)})"
    documents, _ = look.by_tree.get(tree.name, (0, 0))
    problem = root_problem(tree)
    if problem:
        kept = f"; {number_of(documents, 'document')} kept as last seen" if documents else ""
        return Finding(
            Level.WARNING,
            f"{name} {problem}{kept}",
            "bring the folder back, or correct its path (--docs, or the configuration)",
        )
    is_complete = look.error is None and look.holdings.files_waiting == 0
    if is_complete and not documents:
        return Finding(
            Level.NOTE,
            f"{name} has no document",
            f"files must match {', '.join(tree.include)}, and not be ignored (docs/trees.md)",
        )
    known = f": {number_of(documents, 'document')} indexed" if look.error is None else ""
    return Finding(Level.OK, f"{name}{known}")
