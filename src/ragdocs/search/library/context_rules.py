"""What `[[context.rules]]` add for files whose path matches. All matching rules apply."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.config.context_section import ContextRule
from ragdocs.config.resolved import Tree
from ragdocs.models import DocId, TreeName
from ragdocs.parsers.identity import document_id
from ragdocs.search.budget import BYTES_PER_TOKEN
from ragdocs.search.library.cards import short, shown_path
from ragdocs.search.library.context_answers import IncludedDocument
from ragdocs.search.library.references import shown
from ragdocs.search.library.sources import PathMatcher
from ragdocs.store.records import StoredDocument
from ragdocs.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class AppliedRules:
    """The rules that match any of the files, and what they add; of each file, its patterns."""

    rules: tuple[ContextRule, ...]
    patterns: dict[str, tuple[str, ...]]

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(term for rule in self.rules for term in rule.terms)

    @property
    def trees(self) -> frozenset[str]:
        return frozenset(tree for rule in self.rules for tree in rule.trees)


def applied_rules(
    rules: Sequence[ContextRule], names: Sequence[str], matches: PathMatcher
) -> AppliedRules:
    patterns = {
        name: tuple(
            pattern for rule in rules for pattern in rule.match if matches((pattern,), name)
        )
        for name in names
    }
    matched = {pattern for found in patterns.values() for pattern in found}
    applying = tuple(rule for rule in rules if not matched.isdisjoint(rule.match))
    return AppliedRules(applying, patterns)


def included_documents(
    snapshot: Snapshot, applied: AppliedRules, trees: Sequence[Tree]
) -> tuple[tuple[IncludedDocument, ...], tuple[str, ...]]:
    """The documents that the rules always give, and a note for each that is not in the index."""
    found: dict[DocId, IncludedDocument] = {}
    notes: list[str] = []
    for rule in applied.rules:
        for inclusion in rule.include:
            known = snapshot.documents_by_id(_ids(inclusion, trees))
            for document in known.values():
                found.setdefault(document.id, _included(document, rule.match[0]))
            if not known:
                # Of a path that may lie outside of the trees only the name is told.
                name = shown(inclusion.rpartition("/")[2])
                notes.append(f"`{name}`, which a rule includes, is not in the index")
    return tuple(found.values()), tuple(dict.fromkeys(notes))


def _ids(inclusion: str, trees: Sequence[Tree]) -> list[DocId]:
    """`tree:path`, or an absolute path below a tree's folder: by its parts, no file is asked."""
    path = Path(inclusion)
    if not path.is_absolute():
        tree, _, relative = inclusion.partition(":")
        return [document_id(TreeName(tree), relative)]
    return [
        document_id(tree.name, path.relative_to(tree.root).as_posix())
        for tree in trees
        if path.is_relative_to(tree.root)
    ]


def _included(document: StoredDocument, because: str) -> IncludedDocument:
    return IncludedDocument(
        doc_id=document.id,
        path=shown_path(document),
        title=short(document.title),
        lines=document.lines,
        tokens=-(-document.size // BYTES_PER_TOKEN),
        because=because,
    )
