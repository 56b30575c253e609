"""A whole evaluation: the corpus indexed, the queries asked as often as was wished, a report."""

import hashlib
import os
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config.loading import load_config
from ragdocs.config.locations import PROJECT_FOLDER, IndexPlace, cache_folder
from ragdocs.config.resolved import Config
from ragdocs.errors import EvaluationError
from ragdocs.evaluation.ablation import without_each
from ragdocs.evaluation.intervals import SEED
from ragdocs.evaluation.labelled_set import LABELS, LabelledQuery, LabelledSet, read_set
from ragdocs.evaluation.measuring import Difference, Judge, Report
from ragdocs.evaluation.reliability import Honesty
from ragdocs.evaluation.run_files import Ranked, read_run
from ragdocs.evaluation.running import Answers, ask_all

if TYPE_CHECKING:
    from ragdocs.app import App
    from ragdocs.embedding.base import Embedder

AS_CONFIGURED = "as configured"
FOREIGN = 40
"""So many questions of each other set are asked, chosen by the seed."""
_CONFIG_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is asked of an evaluation. `compare`: a run, or a configuration (`.toml`)."""

    config_file: Path | None = None
    compare: Path | None = None
    by: str = ""
    ablate: bool = False
    level: float = 1.0
    near_miss: bool = False
    foreign: tuple[Path, ...] = ()
    """Sets whose questions this corpus does not answer: some of them are asked with `near_miss`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """What an evaluation leaves to its caller: to index, and to say what is being done."""

    bring_in_step: Callable[[Config], None]
    say: Callable[[str], None] = lambda _: None
    embedder: "Embedder | None" = None


class Evaluation:
    """One set, asked with one configuration and with variants of it."""

    def __init__(self, labelled: LabelledSet, wishes: Wishes, helpers: Helpers) -> None:
        self._labelled = labelled
        self._wishes = wishes
        self._helpers = helpers
        self._judge = Judge(labelled, wishes.level)
        self._embedders: dict[str, Embedder] = {}
        self._documents = 0

    def run(self) -> tuple[Report, Answers]:
        """Raises EvaluationError, ConfigError or IndexStoreError; what is wrong with the wishes
        themselves is said before the long work begins.
        """
        config = settings_for(self._labelled.folder, self._wishes.config_file)
        if self._wishes.by:
            self._judge.check_field(self._wishes.by)
        other = self._other()
        foreign = self._foreign()
        answers = self._ask(config, AS_CONFIGURED)
        scored = self._judge.scores(answers.ranked)
        report = Report(
            name=self._labelled.folder.name,
            documents=self._documents,
            queries=len(scored),
            unanswerable=len(self._labelled.queries) - len(scored),
            missing=self._labelled.missing_documents(),
            level=self._judge.level,
            run=self._judge.measured(AS_CONFIGURED, answers),
        )
        by = self._wishes.by
        if by:
            report = replace(report, field=by, groups=self._judge.groups(by, answers.ranked))
        if other is not None:
            report = replace(report, compared=self._compared(other, answers))
        if self._wishes.ablate:
            report = replace(report, ablated=self._ablated(config, answers))
        if self._wishes.near_miss:
            report = replace(report, honesty=self._honesty(config, answers, foreign))
        return report, answers

    def _other(self) -> Config | Ranked | None:
        """What is compared with."""
        other = self._wishes.compare
        if other is None:
            return None
        if other.suffix == _CONFIG_SUFFIX:
            return settings_for(self._labelled.folder, other)
        return read_run(other)

    def _compared(self, other: Config | Ranked, ours: Answers) -> Difference:
        assert self._wishes.compare
        label = self._wishes.compare.name
        theirs = self._ask(other, label) if isinstance(other, Config) else Answers(other)
        measured = self._judge.measured(label, theirs)
        return self._judge.difference(measured, theirs.ranked, ours.ranked)

    def _ablated(self, config: Config, ours: Answers) -> tuple[Difference, ...]:
        found: list[Difference] = []
        for variant in without_each(config):
            label = f"without {variant.part}"
            theirs = self._ask(variant.config, label)
            measured = self._judge.measured(label, theirs)
            ranked = (theirs.ranked, ours.ranked)
            found.append(self._judge.difference(measured, *ranked, variant.setting))
        return tuple(found)

    def _foreign(self) -> list[LabelledQuery]:
        """Raises EvaluationError where there is no set, or where it is the same one."""
        found: list[LabelledQuery] = []
        for folder in self._wishes.foreign:
            other = read_set(folder)
            if other.folder == self._labelled.folder:
                raise EvaluationError(
                    f"{folder} is the set that is measured: name another, whose questions its "
                    "documents do not answer"
                )
            answerable = [query for query in other.queries if query.id in other.labels]
            some = random.Random(SEED).sample(answerable, min(FOREIGN, len(answerable)))
            found += [replace(query, id=f"{other.folder}: {query.id}") for query in some]
        return found

    def _honesty(
        self, config: Config, answers: Answers, foreign: Sequence[LabelledQuery]
    ) -> Honesty:
        """Raises EvaluationError when the corpus has no document that answers anything."""
        relevant = self._labelled.answers()
        if not relevant:
            raise EvaluationError(
                f"{self._labelled.corpus} has none of the documents that {LABELS} calls relevant: "
                "without an answer there is no near miss"
            )
        asked = [query for query in self._labelled.queries if query.id in relevant]
        near = self._ask(config, "without the relevant documents", asked, relevant)
        own = {query.id for query in self._labelled.queries if not self._is_answerable(query)}
        others = self._ask(config, "from other sets", foreign) if foreign else Answers({})
        unanswerable = {query: found for query, found in answers.cited.items() if query in own}
        return self._judge.honesty(answers, near, Answers({}, (), {**unanswerable, **others.cited}))

    def _is_answerable(self, query: LabelledQuery) -> bool:
        return any(grade > 0 for grade in self._labelled.labels.get(query.id, {}).values())

    def _ask(
        self,
        config: Config,
        label: str,
        queries: Sequence[LabelledQuery] | None = None,
        excluded: Mapping[str, Collection[str]] | None = None,
    ) -> Answers:
        """Every query of the set, if no others are given."""
        from ragdocs.app import App

        asked = self._labelled.queries if queries is None else queries
        self._helpers.bring_in_step(config)
        self._helpers.say(f"{label}: asking {len(asked)} queries")
        with App(config, self._shared_embedder(config)) as app:
            self._documents = _documents(app)
            return ask_all(app, asked, excluded)

    def _shared_embedder(self, config: Config) -> "Embedder":
        """One model for all variants of one configuration: loading it takes longer than many
        queries. Another configuration may name another model."""
        from ragdocs.app import App

        if self._helpers.embedder is not None:
            return self._helpers.embedder
        key = config.embedding.model_dump_json()
        if key not in self._embedders:
            self._embedders[key] = App(config).embedder
        return self._embedders[key]


def settings_for(folder: Path, config_file: Path | None) -> Config:
    """The settings in force, for the set's corpus and with its index in the user's cache: one for
    each set of index settings, so that what is compared stays side by side.

    Raises ConfigError.
    """
    flags = {"indexing": {"documents_path": str(folder / "corpus"), "index_path": ""}}
    # From the working directory on, not from the corpus: it is these settings that are measured.
    config = load_config(config_file or Path(), flags=flags)
    return replace(config, index_place=IndexPlace(index_folder(folder)))


def index_folder(folder: Path) -> Path:
    """Outside of the set, and the same for the same set."""
    cache = cache_folder(os.environ) or Path.cwd() / PROJECT_FOLDER
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return cache / "eval" / f"{folder.name[:60]}-{digest}"


def _documents(app: "App") -> int:
    """Raises EvaluationError when there is none."""
    found = app.index_state().documents
    if not found:
        roots = ", ".join(str(tree.root) for tree in app.config.trees)
        raise EvaluationError(
            f"{roots} has no documents that could be indexed: `include` and `exclude` choose them"
        )
    return found
