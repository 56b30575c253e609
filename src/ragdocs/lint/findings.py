"""What lint reports: a finding has a rule, a severity, a place and a message in plain English."""

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from ragdocs.config.choices import LintRule
from ragdocs.config.settings import LintConfig
from ragdocs.errors import QueryError
from ragdocs.models import DocId, Span, TreeName
from ragdocs.store.records import StoredDocument


class LintSeverity(StrEnum):
    """How bad a finding is, in the words of SARIF; the worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """What a rule reports: its severity, one sentence about it, and where it does not apply by
    itself, if it depends on the habits of a tree."""

    severity: LintSeverity
    summary: str
    unless: str = ""


RULES: Mapping[LintRule, RuleInfo] = MappingProxyType(
    {
        LintRule.BROKEN_LINK: RuleInfo(
            LintSeverity.ERROR, "A link to a document or file that does not exist."
        ),
        LintRule.BROKEN_HEADING: RuleInfo(
            LintSeverity.ERROR, "A wikilink to a heading that its document does not have."
        ),
        LintRule.BROKEN_ANCHOR: RuleInfo(
            LintSeverity.ERROR, "A Markdown link to an anchor that its document does not have."
        ),
        LintRule.BROKEN_BLOCK: RuleInfo(
            LintSeverity.ERROR, "A wikilink to a block (`#^id`) that its document does not have."
        ),
        LintRule.NOT_INDEXED: RuleInfo(LintSeverity.ERROR, "A file that could not be indexed."),
        LintRule.AMBIGUOUS_LINK: RuleInfo(
            LintSeverity.WARNING, "A link that could mean several documents."
        ),
        LintRule.AMBIGUOUS_HEADING: RuleInfo(
            LintSeverity.WARNING, "A wikilink to a heading that its document has several times."
        ),
        LintRule.AMBIGUOUS_NAME: RuleInfo(
            LintSeverity.WARNING,
            "A file name, title or alias that several documents share.",
            "the tree has no wikilinks",
        ),
        LintRule.NEAR_COPY: RuleInfo(
            LintSeverity.WARNING, "Passages that nearly repeat those of another document."
        ),
        LintRule.STALE_PAGE: RuleInfo(
            LintSeverity.WARNING, "A page that is older than `stale_days`.", "`stale_days` is 0"
        ),
        LintRule.PARTLY_INDEXED: RuleInfo(
            LintSeverity.WARNING, "A file of which some text cannot be found."
        ),
        LintRule.FRONT_MATTER: RuleInfo(
            LintSeverity.WARNING, "Front matter that was ignored, in whole or in part."
        ),
        LintRule.ORPHAN: RuleInfo(
            LintSeverity.NOTE,
            "A document that nothing links to and that links to nothing.",
            "no document of the tree links to another",
        ),
        LintRule.UNDATED_PAGE: RuleInfo(
            LintSeverity.NOTE,
            "A page without a date in its front matter.",
            "most pages of the tree have none",
        ),
        LintRule.MISSING_TITLE: RuleInfo(
            LintSeverity.NOTE,
            "A page without a first-level heading and without a title in its front matter.",
            "the tree has wikilinks, and most of its pages have none",
        ),
    }
)
"""In the order in which a summary lists them: by severity."""


@dataclass(frozen=True, slots=True)
class LintPlace:
    """Lines of a document."""

    tree: TreeName
    path: str
    line_start: int
    line_end: int
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One problem. `suggestion` is what may have been meant; `related` are the other places that
    the message speaks of; bytes are those of the link, where the finding is about one."""

    rule: LintRule
    severity: LintSeverity
    tree: TreeName
    path: str
    file: str | None = None
    line_start: int
    line_end: int
    message: str
    suggestion: str | None = None
    byte_start: int | None = None
    byte_end: int | None = None
    related: tuple[LintPlace, ...] = ()


def find_at(
    rule: LintRule,
    document: StoredDocument,
    message: str,
    *,
    link: Span | None = None,
    line_start: int = 1,
    line_end: int = 1,
    suggestion: str | None = None,
    related: tuple[LintPlace, ...] = (),
) -> LintFinding:
    """A finding about a link, about some lines, or about the whole document, at its first line."""
    if link:
        line_start, line_end = link.line_start, link.line_end
    return LintFinding(
        rule=rule,
        severity=RULES[rule].severity,
        tree=document.tree,
        path=document.path,
        line_start=line_start,
        line_end=line_end,
        message=message,
        suggestion=suggestion,
        byte_start=link.byte_start if link else None,
        byte_end=link.byte_end if link else None,
        related=related,
    )


@dataclass(frozen=True, slots=True)
class RuleSelection:
    """The rules that run. A rule that was named applies to every page, whatever its tree's habits
    are."""

    rules: frozenset[LintRule] = frozenset(LintRule)
    named: frozenset[LintRule] = frozenset()

    def __contains__(self, rule: LintRule) -> bool:
        return rule in self.rules

    def is_named(self, rule: LintRule) -> bool:
        return rule in self.named

    @classmethod
    def of(
        cls, settings: LintConfig, select: Iterable[str] = (), ignore: Iterable[str] = ()
    ) -> "RuleSelection":
        """`select` replaces the configured rules, `ignore` adds to those that are configured.

        Raises QueryError for an unknown rule, and for one that cannot run as things are.
        """
        asked = frozenset(map(rule_named, select))
        if LintRule.STALE_PAGE in asked and not settings.stale_days:
            raise QueryError(
                "stale-page needs an age: set lint.stale_days in the configuration, "
                "or RAGDOCS_LINT__STALE_DAYS"
            )
        named = asked or frozenset(settings.select)
        left_out = {*settings.ignore} - asked | set(map(rule_named, ignore))
        return cls((named or frozenset(LintRule)) - left_out, named)


def rule_named(name: str) -> LintRule:
    try:
        return LintRule(name)
    except ValueError:
        near = difflib.get_close_matches(name[:100], LintRule, n=1, cutoff=0.5)
        meant = f"; did you mean {near[0]}?" if near else ";"
        known = ", ".join(sorted(LintRule))
        raise QueryError(f"there is no rule {name[:100]!r}{meant} the rules are {known}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRequest:
    """What to look for, and where: findings in other trees or below other paths are left out. A
    path is relative to its tree, with or without `tree:` before it."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    trees: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedLinks:
    """Links that cannot be judged from inside the trees."""

    outside: int = 0
    """They lead out of their tree."""
    site: int = 0
    """Addresses of a web site, such as `/docs/intro`, that no folder corresponds to."""
    attachments: int = 0
    """Wikilinks to files other than notes."""
    templates: int = 0
    """Their target is filled in by a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """All findings, by place. `counts` are by rule, for each rule that ran."""

    findings: tuple[LintFinding, ...]
    counts: Mapping[LintRule, int]
    documents: int
    unchecked: UncheckedLinks = field(default_factory=UncheckedLinks)
    notes: tuple[str, ...] = ()

    def worst_first(self) -> list[LintFinding]:
        """For a reader who sees only the first: by severity, each rule in turn, then by place."""
        order = {rule: number for number, rule in enumerate(RULES)}
        return sorted(self.findings, key=lambda one: order[one.rule])


def count_rules(findings: Sequence[LintFinding], ran: Collection[LintRule]) -> dict[LintRule, int]:
    found = Counter(finding.rule for finding in findings)
    return {rule: found[rule] for rule in RULES if rule in ran}


Documents = Mapping[DocId, StoredDocument]
