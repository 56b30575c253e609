"""Asks every index for one query, and reads the chunks behind the hits once."""

import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ragdocs.config.choices import Fusion
from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.base import Embedder, is_english_only
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.code import CodeEngine, chunks_with_language
from ragdocs.indices.graph import GraphIndex
from ragdocs.indices.keyword import (
    KeywordEngine,
    KeywordQuery,
    ScoresOf,
    Unit,
    compile_query,
    rarest,
    search_in_tiers,
    token_unit,
)
from ragdocs.indices.languages import fold
from ragdocs.indices.signatures import signatures_of
from ragdocs.indices.term_vectors import NearTerm
from ragdocs.indices.vector import VectorIndex
from ragdocs.indices.view import Hit, Scope
from ragdocs.limits import (
    HYPOTHESIS_WINDOWS,
    MAX_CONDITIONS,
    MAX_GUESSES,
    MAX_SEARCHED_TERMS,
    MAX_WISHES,
    QUERY_WINDOWS,
)
from ragdocs.models import And, DocId, ParsedQuery, QueryExpression, QueryReading, Term
from ragdocs.search.candidates import Candidate, ExactToken, Strategy, TokenKind
from ragdocs.search.classifier import exact_tokens, foreign_question, token_kind
from ragdocs.search.fusion import (
    FEW_CHUNKS,
    FEW_FORMS,
    FORM_CHUNKS,
    LEAST_RARE,
    Fused,
    rare_weights,
)
from ragdocs.search.query_language import count_conditions, parse_query, read_as_plain
from ragdocs.search.requests import Topic
from ragdocs.search.understanding import (
    NONE_HAS_ALL,
    NOTHING,
    NOWHERE,
    Interpreter,
    Understanding,
    Wish,
    WordSources,
    binds,
    look_up,
    satisfiable,
)
from ragdocs.search.vector_search import (
    Bounds,
    MeaningSearch,
    Nearest,
    Pending,
    await_vector,
    neighbour_hits,
)
from ragdocs.store.records import ChunkKey, Position
from ragdocs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# From fused numbers to candidates: everything any stage may need is read here, once.


def few_of_each(snapshot: Snapshot, fused: Sequence[Fused], most: int) -> list[Fused]:
    """The first so many of each document, in the same order."""
    documents = documents_of(snapshot, [item.key for item in fused])
    taken = Counter[DocId | None]()
    kept: list[Fused] = []
    for item in fused:
        document = documents.get(item.key)
        taken[document] += 1
        if taken[document] <= most:
            kept.append(item)
    return kept


def documents_of(snapshot: Snapshot, keys: Collection[int]) -> dict[int, DocId]:
    rows = snapshot.select(
        """SELECT c.key, d.id FROM chunks c JOIN documents d ON d.key = c.doc
        WHERE c.key IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(keys)),),
    )
    return {key: DocId(doc_id) for key, doc_id in rows}


class Hydration:
    """Reads candidates of one snapshot; a document is read once however many chunks it has."""

    def __init__(self, snapshot: Snapshot, vector: VectorIndex | None) -> None:
        self._snapshot = snapshot
        self._vector = vector

    def candidates(self, fused: Sequence[Fused]) -> list[Candidate]:
        """In the same order; what is no longer in the store is left out."""
        keys = [item.key for item in fused]
        chunks = self._snapshot.chunks_by_key(keys)
        owners = self._snapshot.documents_by_id({stored.chunk.doc_id for stored in chunks.values()})
        vectors = self._vectors(keys)
        wordings = signatures_of(self._snapshot, keys)
        found: list[Candidate] = []
        for item in fused:
            stored = chunks.get(item.key)
            owner = owners.get(stored.chunk.doc_id) if stored is not None else None
            if stored is not None and owner is not None:
                found.append(
                    Candidate(
                        stored=stored,
                        document=owner,
                        score=item.score,
                        evidence=item.evidence,
                        contributions=item.contributions,
                        vector=vectors.get(item.key),
                        ngrams=wordings.get(item.key, 0),
                    )
                )
        return found

    def _vectors(self, keys: Sequence[ChunkKey]) -> "Mapping[ChunkKey, NDArray[np.float32]]":
        return self._vector.vectors_of(keys) if self._vector is not None else {}


# One query put to every index: which chunks could answer it, by each one's own opinion.

READ_AHEAD = 20
"""About half of the usual candidates are found by their words."""
CORRECTED_CHARS = 250
"""A query of mistyped words that is no longer is read by the model again, corrected: both take one
window."""
GRAPH_SEEDS = 10
"""The documents whose neighbours are looked at."""
GRAPH_SEED_CHUNKS = 3 * GRAPH_SEEDS
"""The chunks, best first, that these documents are taken from."""


@runtime_checkable
class Follows(Protocol):
    """An index that catches up with the store by itself, for all requests."""

    @property
    def position(self) -> Position | None: ...

    def forget(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Indices:
    """All that can be asked. Without vectors or links, the rest still answers."""

    analyzer: Analyzer
    keyword: KeywordEngine
    code: CodeEngine | None = None
    vector: VectorIndex | None = None
    embedder: Embedder | None = None
    graph: GraphIndex | None = None
    cross_encoder: CrossEncoder | None = None
    words: WordSources = field(default_factory=WordSources)

    def catch_up(self, snapshot: Snapshot) -> None:
        for view in (self.keyword, self.vector, self.graph):
            if view is not None:
                view.catch_up(snapshot)

    def is_ahead_of(self, snapshot: Snapshot) -> bool:
        """Whether one of them has followed a later commit than the snapshot's."""
        return self.newest() > snapshot.position.generation

    def newest(self) -> int:
        """The last commit that one of them has followed."""
        reached = [view.position for view in self._following]
        return max((position.generation for position in reached if position), default=0)

    def start_over(self) -> None:
        for view in self._following:
            view.forget()

    @cached_property
    def _following(self) -> "list[Follows]":
        # Asked twice in every query, and slow to tell.
        views = (self.keyword, self.vector, self.graph)
        return [view for view in views if isinstance(view, Follows)]


class RareDocument(NamedTuple):
    """The document that has more of the words' weight in rare words than any other."""

    id: DocId
    weight: float


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """All that is known of one query: what was asked, how the documents of one snapshot let it be
    understood, and each index's hits. An ideal is the most that there was to score in an index (1
    where it is not known); a frequency is how many chunks have a word.
    """

    topic: Topic
    understanding: Understanding
    pending: Pending | None = None
    """Its vector, which is being made."""
    is_embeddable: bool = False
    """Whether the model was given the text."""
    added: Sequence[NearTerm] = ()
    """Words, with their vectors, that the query's vector is moved towards."""
    most_terms: int = MAX_SEARCHED_TERMS
    lists: Mapping[Strategy, Sequence[Hit]] = field(default_factory=dict[Strategy, Sequence[Hit]])
    ideals: Mapping[Strategy, float] = field(default_factory=dict[Strategy, float])
    frequencies: Mapping[Unit, int] = field(default_factory=dict[Unit, int])
    nearest: Nearest | None = None
    """What is near in meaning; None when that could not be asked."""
    allowed: Set[int] | None = None
    """The only chunks that may be found, whichever index finds them; None is all."""
    wishes: tuple[Wish, ...] = ()
    """What the question quotes, and which chunks have it."""
    is_idle: bool = False
    """Only stop words, letters or digits were typed: that a passage has them tells nothing."""
    rare: Mapping[ChunkKey, float] = field(default_factory=dict[ChunkKey, float])
    """Of the chunks with rare words: what part of all the words' weight those rare ones have that
    stand in the chunk's document."""
    rarest: "RareDocument | None" = None
    exact: tuple[ExactToken, ...] = ()
    passages: int = 0
    """Of all documents."""
    scorers: Mapping[Strategy, ScoresOf] = field(
        default_factory=dict[Strategy, ScoresOf], compare=False
    )
    """Of the indices that may have more than they gave: what others' hits score there."""
    is_degraded: bool = False
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """How many different words were looked for."""
        return len(self.understanding.query.units)

    @property
    def has_known_words(self) -> bool:
        """Whether the documents have any of the typed words."""
        return any(self.frequencies.get(unit, 0) for unit in self.understanding.query.units)

    def coverage(self, kind: Strategy) -> float:
        """How much of the most that the words could score there the best passage has, in [0, 1]."""
        hits, ideal = self.lists.get(kind), self.ideals.get(kind, 0.0)
        return min(1.0, hits[0].score / ideal) if hits and ideal > 0 else 0.0

    def is_full(self, limit: int) -> bool:
        """Whether an index may have more than it gave."""
        return any(len(hits) >= limit for hits in self.lists.values()) or bool(
            self.nearest and len(self.nearest.hits) >= limit
        )

    def with_list(
        self, strategy: Strategy, hits: Sequence[Hit], ideal: float | None = None
    ) -> "RunningQuery":
        """The hits of one index, those that may be found."""
        ideals = self.ideals if ideal is None else {**self.ideals, strategy: ideal}
        return replace(self, lists={**self.lists, strategy: self.kept(hits)}, ideals=ideals)

    def of(self, keys: Set[ChunkKey], limit: int) -> "RunningQuery":
        """What was found of these chunks; a list that is shorter than the limit is complete, and
        stays as it is.
        """
        lists = {
            strategy: [hit for hit in hits if len(hits) < limit or hit.key in keys]
            for strategy, hits in self.lists.items()
            if strategy is not Strategy.GRAPH
        }
        return replace(self, lists=lists)

    def with_earlier(self, earlier: "RunningQuery") -> "RunningQuery":
        """Together with what an earlier look found in documents that this one left out."""
        lists: dict[Strategy, Sequence[Hit]] = dict(self.lists)
        for strategy, hits in earlier.lists.items():
            every = {hit.key: hit for hit in (*lists.get(strategy, ()), *hits)}
            lists[strategy] = sorted(every.values(), key=lambda hit: (-hit.score, hit.key))
        nearest = self.nearest
        if nearest is not None and earlier.nearest is not None:
            nearness = {**nearest.nearness, **earlier.nearest.nearness}
            best = max(nearest.best_similarity, earlier.nearest.best_similarity)
            prominence = earlier.nearest.prominence
            nearest = replace(
                nearest, best_similarity=best, nearness=nearness, prominence=prominence
            )
        exact = self.exact or earlier.exact
        return replace(self, lists=lists, nearest=nearest, exact=exact)

    def completed(self, others: Collection[ChunkKey] = ()) -> "RunningQuery":
        """Each chunk that an index found, that has an exact token, or that is one of these others,
        with its scores in all of them."""
        keys = dict.fromkeys(hit.key for hits in self.lists.values() for hit in hits)
        exact = (token.keys for token in self.exact if token.is_telling)
        for chunks in (*exact, others):
            keys |= dict.fromkeys(chunks)
        lists, nearest = dict(self.lists), self.nearest
        for strategy, scores_of in self.scorers.items():
            known = {hit.key for hit in lists[strategy]}
            scores = scores_of([key for key in keys if key not in known])
            every = [*lists[strategy], *(Hit(key, score) for key, score in scores.items())]
            lists[strategy] = sorted(every, key=lambda hit: (-hit.score, hit.key))
            if strategy is Strategy.SEMANTIC and nearest is not None:
                nearest = replace(nearest, nearness={**nearest.nearness, **scores})
        return replace(self, lists=lists, nearest=nearest)

    def scored_by(self, strategy: Strategy, scores_of: ScoresOf) -> "RunningQuery":
        return replace(self, scorers={**self.scorers, strategy: scores_of})

    def kept(self, hits: Sequence[Hit]) -> list[Hit]:
        allowed = self.allowed
        if allowed is None:
            return list(hits)
        return [hit for hit in hits if hit.key in allowed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A topic that is being embedded before any snapshot is open, and its share of what a request
    may cost."""

    topic: Topic
    parsed: ParsedQuery
    pending: Pending | None
    queries: int
    """Of the request."""
    most_terms: int
    most_guesses: int


class Retrieval:
    """Asks the indices: those of words here, that of meaning beside them."""

    def __init__(self, indices: Indices, settings: SearchConfig) -> None:
        self._indices = indices
        self._settings = settings
        self._interpreter = Interpreter(indices.analyzer, indices.words, settings, indices.vector)
        self._meaning = MeaningSearch(indices.vector, indices.embedder, settings.document_weight)

    def close(self) -> None:
        self._meaning.close()

    def has_model(self) -> bool:
        """Whether meaning can be searched; the model is loaded for that."""
        embedder = self._indices.embedder
        if self._indices.vector is None or embedder is None:
            return False
        try:
            embedder.load()
        except EmbeddingError:
            return False
        return True

    def start(self, topics: Sequence[Topic]) -> list[Started]:
        """Needs no index: the model can be at work while the store is opened."""
        parsed = [parse_query(topic.words, strict=topic.is_strict) for topic in topics]
        if len(topics) > 1:
            share = fair_share(MAX_CONDITIONS, [count_conditions(each) for each in parsed])
            parsed = [parse_query(each.words, share, strict=each.is_strict) for each in topics]
        pending = [self._embed(*each) for each in zip(topics, parsed, strict=True)]
        analyzer = self._indices.analyzer
        most_terms = MAX_SEARCHED_TERMS
        if len(topics) > 1:
            wanted = [len(compile_query(each, analyzer).units) for each in parsed]
            most_terms = fair_share(MAX_SEARCHED_TERMS, wanted)
        return [
            Started(
                topic=topic,
                parsed=each,
                pending=vector,
                queries=len(topics),
                most_terms=most_terms,
                most_guesses=max(1, MAX_GUESSES // len(topics)),
            )
            for topic, each, vector in zip(topics, parsed, pending, strict=True)
        ]

    def _embed(self, topic: Topic, parsed: ParsedQuery) -> Pending | None:
        if topic.meaning is None:
            return self._meaning.embed(parsed.text, QUERY_WINDOWS)
        return self._meaning.embed(topic.meaning, HYPOTHESIS_WINDOWS)

    def read(self, snapshot: Snapshot, started: Started, language: str) -> RunningQuery:
        read = self._read(snapshot, started)
        if started.parsed.reading is QueryReading.PHRASES:
            read = self._read_phrases(snapshot, started, read)
        if not language.strip():
            return read
        speaking = chunks_with_language(snapshot, language)
        allowed = speaking if read.allowed is None else speaking & read.allowed
        return replace(read, allowed=allowed)

    def _read_phrases(
        self, snapshot: Snapshot, started: Started, strict: RunningQuery
    ) -> RunningQuery:
        """Phrases and a few words bind where a passage has them all and the phrases are names."""
        plain = self._read(snapshot, replace(started, parsed=read_as_plain(started.topic.words)))
        if binds(started.parsed, strict.allowed, plain.wishes):
            return strict
        if strict.allowed:
            return plain
        understood = replace(plain.understanding, notes=(*plain.understanding.notes, NOWHERE))
        return replace(plain, understanding=understood)

    def _read(self, snapshot: Snapshot, started: Started) -> RunningQuery:
        topic, parsed, pending = started.topic, started.parsed, started.pending
        understood = self._interpreter.read(snapshot, topic.words, parsed, started.most_guesses)
        understood = self._within_bounds(snapshot, understood, started)
        meant = understood.did_you_mean if understood.is_all_mistyped else None
        if topic.meaning is None and meant and len(parsed.text) <= CORRECTED_CHARS:
            # What was typed means nothing, and by chance it is near something.
            corrected = parse_query(meant, strict=topic.is_strict)
            pending = self._meaning.embed(corrected.text, QUERY_WINDOWS - 1)
        added: Sequence[NearTerm] = ()
        # A hypothesis is long and says what it means: nothing is added to it.
        if topic.meaning is None and self._interpreter.may_expand(snapshot, understood):
            vector = await_vector(pending)[0]
            understood, added = self._interpreter.expanded(snapshot, understood, vector)
        understood, allowed = self._binding(snapshot, understood)
        return RunningQuery(
            topic=topic,
            understanding=understood,
            pending=pending,
            is_embeddable=started.pending is not None,
            added=added,
            most_terms=started.most_terms,
            allowed=allowed,
            is_idle=self._is_idle(understood.parsed.text),
            wishes=self._wishes(snapshot, understood, started.queries),
        )

    def _wishes(
        self, snapshot: Snapshot, understood: Understanding, queries: int
    ) -> tuple[Wish, ...]:
        quoted = understood.query.wishes[: max(1, MAX_WISHES // queries)]
        return look_up(quoted, self._indices.keyword, snapshot)

    def _within_bounds(
        self, snapshot: Snapshot, understood: Understanding, started: Started
    ) -> Understanding:
        units = understood.query.units
        count = partial(self._indices.keyword.frequencies, snapshot)
        total = self._indices.keyword.count(snapshot)
        kept = rarest(units, count, started.most_terms, total, started.queries)
        return understood if len(kept) == len(units) else understood.looking_for(kept)

    def find(self, snapshot: Snapshot, read: RunningQuery, bounds: Bounds) -> RunningQuery:
        """With the hits of every index."""
        topic, pending, found = read.topic, read.pending, read
        searching = self._meaning.search(pending, read.added, bounds)
        if topic.words:
            found = self._with_wished(snapshot, self._by_words(snapshot, found, bounds), bounds)
            found = self._by_code(snapshot, found, bounds)
            self._read_ahead(snapshot, found, searching)
        vector, notes = await_vector(pending)
        language = self._on_language(snapshot, topic)
        notes = (*read.understanding.notes, *notes, *language, *_on_emptiness(found))
        found = replace(found, notes=notes, is_degraded=self._is_degraded(read, vector))
        if vector is None or searching is None:
            return found
        nearest = searching.result()
        found = replace(found.with_list(Strategy.SEMANTIC, nearest.hits), nearest=nearest)
        if len(nearest.hits) < bounds.hits:
            return found
        return found.scored_by(Strategy.SEMANTIC, partial(self._meaning.distances, nearest))

    def _on_language(self, snapshot: Snapshot, topic: Topic) -> tuple[str, ...]:
        """The advice to translate a question that neither the model nor the documents know."""
        embedder = self._indices.embedder
        if embedder is None or not is_english_only(embedder.name):
            return ()
        question = foreign_question(topic.meaning or topic.words)
        if question is None:
            return ()
        tokens = (token for word in question.words for token in self._indices.analyzer.tokens(word))
        terms = tuple({token.term for token in tokens})
        counts = self._indices.keyword.frequencies(snapshot, terms)
        known = {term: counts.get(term, 0) for term in terms}
        if question.is_spoken(known, snapshot.ledger.count("chunks")):
            return ()
        return (question.note(PurePath(embedder.name).name),)

    def _binding(
        self, snapshot: Snapshot, understood: Understanding
    ) -> tuple[Understanding, Set[int] | None]:
        """What a strict query's conditions leave: they bind every index alike."""
        matching = partial(self._indices.keyword.matching, snapshot)
        understood, allowed = satisfiable(understood, self._indices.analyzer, matching)
        if allowed is not None:
            query = replace(understood.query, allowed=frozenset(allowed))
            understood = replace(understood, query=query)
        return understood, allowed

    def _is_degraded(self, read: RunningQuery, vector: object) -> bool:
        """Whether meaning should have been searched and could not be."""
        if self._indices.vector is None or self._indices.embedder is None:
            return True
        return read.is_embeddable and vector is None

    def _read_ahead(
        self, snapshot: Snapshot, found: RunningQuery, searching: "Future[Nearest] | None"
    ) -> None:
        """While meaning is still being searched, reads what will probably be wanted anyway."""
        if searching is not None and not searching.done():
            hits = found.lists[Strategy.KEYWORD][:READ_AHEAD]
            snapshot.chunks_by_key([hit.key for hit in hits])

    def _by_words(self, snapshot: Snapshot, found: RunningQuery, bounds: Bounds) -> RunningQuery:
        query = found.understanding.query
        engine = self._indices.keyword
        hits = search_in_tiers(engine, snapshot, query, bounds.hits, bounds.scope)
        is_all = len(hits.hits) < bounds.hits
        given = replace(
            found.with_list(Strategy.KEYWORD, hits.hits, hits.ideal),
            frequencies=hits.frequencies,
            exact=self._exact(snapshot, found, bounds.scope),
            passages=engine.count(snapshot),
            scorers={} if is_all else {Strategy.KEYWORD: hits.scores_of},
        )
        return self._with_rare(snapshot, given)

    def _exact(
        self, snapshot: Snapshot, found: RunningQuery, scope: Scope
    ) -> tuple[ExactToken, ...]:
        understood, allowed = found.understanding, found.allowed
        if understood.query.condition is not None:
            return ()
        exact: list[ExactToken] = []
        text = understood.parsed.text
        tokens = exact_tokens(text)
        is_word = found.topic.is_name and not tokens and not found.is_idle
        for token in [text] if is_word else tokens:
            keys = self._with_token(snapshot, token)
            if keys is None or (is_word and not keys):  # a word may be meant by others
                continue
            places = places_of(snapshot, token, keys)
            if not is_word:
                # The same words, written in another way, may stand in others: `IL 10` for `IL-10`.
                written = [place for place in places if place.is_written]
                if token.isalpha() and token.isupper():  # `PASSWORD` is a word, `ENOENT` a name
                    written = [place for place in written if place.is_same_case]
                if places and not written and token.isalpha():  # a word of the same stem
                    continue
                places = written or places
            kept = frozenset(
                place.key
                for place in places
                if (scope is None or place.document in scope)
                and (allowed is None or place.key in allowed)
            )
            kind = TokenKind.NAME if is_word else token_kind(token)
            exact.append(ExactToken(kept, count_different(places), kind))
        return tuple(exact)

    def _is_idle(self, text: str) -> bool:
        is_stop_word = self._indices.analyzer.is_stop_word
        words = (word.strip(string.punctuation) for word in text.split())
        return all(is_stop_word(word) or (len(word) < 2 and word.isascii()) for word in words)

    def _with_token(self, snapshot: Snapshot, token: str) -> Set[int] | None:
        """None where it says nothing: too many have it, or it is no word."""
        unit = token_unit(token, self._indices.analyzer)
        if unit is None:
            return None
        keys = self._indices.keyword.matching(snapshot, unit)
        return keys if len(keys) <= FEW_CHUNKS else None

    def _with_rare(self, snapshot: Snapshot, found: RunningQuery) -> RunningQuery:
        """Words that one document alone has in this form are rare whatever their stems are."""
        frequencies = {unit: found.frequencies[unit] for unit in found.understanding.query.units}
        own = self._own_forms(snapshot, found.understanding, frequencies)
        counts = frequencies | {unit: len(keys) for unit, keys in own.items()}
        weights = rare_weights(found.passages, counts)
        if sum(weights.values()) <= LEAST_RARE:
            return found
        matching = partial(self._indices.keyword.matching, snapshot)
        having = {unit: own[unit] if unit in own else matching(unit) for unit in weights}
        every = {key for keys in having.values() for key in keys}
        owners = documents_of(snapshot, every)
        of_document: defaultdict[DocId, float] = defaultdict(float)
        for unit, keys in having.items():
            for document in {owners[key] for key in keys if key in owners}:
                of_document[document] += weights[unit]
        rare = {ChunkKey(key): of_document[owners[key]] for key in every if key in owners}
        return replace(found, rare=rare, rarest=_rarest(of_document))

    def _own_forms(
        self, snapshot: Snapshot, understood: Understanding, frequencies: Mapping[Unit, int]
    ) -> dict[Unit, Set[int]]:
        """Of words as they were typed that one and the same document alone has: its chunks with
        them. One such word may be there by chance (`recommends`), two are not."""
        vocabulary = self._indices.words.vocabulary
        if vocabulary is None or understood.parsed.is_strict:
            return {}
        text = understood.parsed.text
        tokens = self._indices.analyzer.query(text)
        forms = {Unit((each.term,)): fold(text[each.start : each.end]) for each in tokens}
        forms = {unit: form for unit, form in forms.items() if frequencies.get(unit, 0) > 0}
        alone = vocabulary.in_one_document(snapshot, forms.values())
        found = {unit: form for unit, form in forms.items() if form in alone}
        if len(found) < FEW_FORMS or max(map(frequencies.__getitem__, found)) > FORM_CHUNKS:
            return {}
        matching = partial(self._indices.keyword.matching, snapshot)
        having = {unit: with_word(snapshot, form, matching(unit)) for unit, form in found.items()}
        owners = documents_of(snapshot, _union(having.values()))
        of_unit = {unit: {owners[key] for key in keys} for unit, keys in having.items()}
        counts = Counter(next(iter(one)) for one in of_unit.values() if len(one) == 1)
        most = {document for document, count in counts.items() if count >= FEW_FORMS}
        return {
            unit: having[unit] for unit, one in of_unit.items() if len(one) == 1 and one <= most
        }

    def _with_wished(self, snapshot: Snapshot, found: RunningQuery, bounds: Bounds) -> RunningQuery:
        """What has a phrase that was wished for may be behind all that its words find."""
        hits = {hit.key: hit for hit in found.lists[Strategy.KEYWORD]}
        for wish in found.wishes:
            if wish.strength <= 0 or wish.keys <= hits.keys():
                continue
            units = found.understanding.query.units
            query = KeywordQuery(units, condition=wish.unit, allowed=frozenset(wish.keys))
            more = self._indices.keyword.search(snapshot, query, bounds.hits, bounds.scope)
            hits.update({hit.key: hit for hit in more.hits})
        if len(hits) == len(found.lists[Strategy.KEYWORD]):
            return found
        ranked = sorted(hits.values(), key=lambda hit: (-hit.score, hit.key))
        return found.with_list(Strategy.KEYWORD, ranked)

    def _by_code(self, snapshot: Snapshot, found: RunningQuery, bounds: Bounds) -> RunningQuery:
        engine = self._indices.code
        if engine is None or not self._settings.code_search_enabled:
            return found
        text = found.understanding.parsed.text
        code = engine.search(
            snapshot, text, bounds.hits, bounds.scope, bounds.language, most_terms=found.most_terms
        )
        found = found.with_list(Strategy.CODE, code.hits, code.ideal)
        return found.scored_by(Strategy.CODE, code.scores_of) if code.scores_of else found

    def completed(self, found: RunningQuery, linked: Sequence[Hit]) -> RunningQuery:
        """With the scores that are missing; rank fusion has no use for them."""
        if self._settings.fusion is not Fusion.SCORE:
            return found
        return found.completed([hit.key for hit in linked])

    def neighbours(
        self, snapshot: Snapshot, found: RunningQuery, fused: Sequence[Fused], scope: Scope
    ) -> list[Hit]:
        """The best passages of documents linked with those that were found."""
        graph = self._indices.graph
        if graph is None or self._settings.graph_weight <= 0:
            return []
        linked = graph.neighbours(
            _best_documents(snapshot, fused), depth=self._settings.graph_depth, scope=scope
        )
        vector = None if found.nearest is None else found.nearest.vector
        weight = self._settings.graph_neighbor_weight
        hits = neighbour_hits(snapshot, linked, self._indices.vector, vector, weight)
        return found.kept(hits)

    def nearness(
        self, found: RunningQuery, keys: Collection[ChunkKey]
    ) -> dict[ChunkKey, float] | None:
        """How near these chunks are in meaning; None when that could not be asked."""
        return self._meaning.nearness(found.nearest, keys)


def with_word(snapshot: Snapshot, word: str, keys: Collection[int]) -> frozenset[int]:
    """Those of the chunks whose text has the word by itself, in either case."""
    rows = snapshot.select(
        "SELECT key, text FROM chunks WHERE key IN (SELECT value FROM json_each(?)) "
        "AND instr(lower(text), ?)",
        (json.dumps(list(keys)), word),
    )
    by_itself = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    return frozenset(key for key, text in rows if by_itself.search(text))


def _rarest(weights: Mapping[DocId, float]) -> RareDocument | None:
    """None where two have as much."""
    ranked = sorted(weights.items(), key=lambda each: -each[1])
    if not ranked or (len(ranked) > 1 and ranked[1][1] >= ranked[0][1]):
        return None
    return RareDocument(*ranked[0])


def _union(sets: Iterable[Set[int]]) -> frozenset[int]:
    return frozenset[int]().union(*sets)


class TokenPlace(NamedTuple):
    """A chunk that an exact token may stand in, and whether it does, letter by letter, in any case
    or in the same."""

    key: ChunkKey
    document: DocId
    text_hash: bytes | None
    is_written: bool
    is_same_case: bool


def places_of(snapshot: Snapshot, token: str, keys: Collection[int]) -> list[TokenPlace]:
    """Looks for the token in text, headings, title and path."""
    rows = snapshot.select(
        "SELECT key, id, text_hash, instr(lower(said), lower(?)) > 0, instr(said, ?) > 0 FROM ("
        "SELECT chunks.key, documents.id, chunks.text_hash, coalesce(chunks.text, '') "
        "|| char(10) || chunks.breadcrumb || char(10) || chunks.headings || char(10) "
        "|| documents.title || char(10) || documents.path AS said "
        "FROM chunks JOIN documents ON documents.key = chunks.doc "
        "WHERE chunks.key IN (SELECT value FROM json_each(?)))",
        (token, token, json.dumps(list(keys))),
    )
    return [
        TokenPlace(ChunkKey(key), DocId(document), text_hash, bool(is_written), bool(is_same))
        for key, document, text_hash, is_written, is_same in rows
    ]


def count_different(places: Sequence[TokenPlace]) -> int:
    """How many documents these are in; those that have the same texts there count as one."""
    texts: defaultdict[DocId, set[bytes | None]] = defaultdict(set)
    for place in places:
        texts[place.document].add(place.text_hash)
    return len({frozenset(each) for each in texts.values()})


def fair_share(most: int, wanted: Sequence[int]) -> int:
    """The most that each may have, so that all together have no more than `most`: who wants less
    leaves the rest to the others.
    """
    left = most
    for served, count in enumerate(sorted(wanted)):
        share = left // (len(wanted) - served)
        if count > share:
            return share
        left -= count
    return most


def _on_emptiness(found: RunningQuery) -> tuple[str, ...]:
    """Notes on a strict query that no passage can fulfil."""
    query = found.understanding.query
    if found.allowed is not None and not found.allowed:
        return (NONE_HAS_ALL if _is_of_words(found.understanding.parsed.expression) else NOTHING,)
    if query.condition is not None and not query.units:
        return ("this query only filters: add words to look for",)
    return ()


def _is_of_words(expression: QueryExpression | None) -> bool:
    """Without any operator: then it was asked to be strict."""
    words = expression.expressions if isinstance(expression, And) else (expression,)
    return all(isinstance(word, Term) for word in words)


def _best_documents(snapshot: Snapshot, fused: Sequence[Fused]) -> dict[DocId, float]:
    """The first documents with their best scores."""
    first = fused[:GRAPH_SEED_CHUNKS]
    owners = documents_of(snapshot, [item.key for item in first])
    best: dict[DocId, float] = {}
    for item in first:
        if item.key in owners and len(best) < GRAPH_SEEDS:
            best.setdefault(owners[item.key], item.score)
    return best
