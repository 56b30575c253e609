"""Searches every index for one query, and reads the chunks of its hits."""

import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import NamedTuple

from ragdocs.config.settings import SearchConfig
from ragdocs.embedding.base import Embedder, is_english_only
from ragdocs.embedding.cross_encoder import CrossEncoder
from ragdocs.errors import EmbeddingError
from ragdocs.indices.analysis import Analyzer
from ragdocs.indices.conditions import (
    Condition,
    Filter,
    Unit,
    both,
    in_language,
    language_of,
)
from ragdocs.indices.hits import Hit, NearTerm, ScoresOf
from ragdocs.indices.keyword import (
    KeywordQuery,
    compile_query,
    rarest,
    search_in_tiers,
    token_unit,
)
from ragdocs.indices.languages import fold
from ragdocs.indices.view import View
from ragdocs.limits import (
    HYPOTHESIS_WINDOWS,
    MAX_CONDITIONS,
    MAX_GUESSES,
    MAX_SEARCHED_TERMS,
    MAX_WISHES,
    QUERY_WINDOWS,
)
from ragdocs.models import And, DocId, ParsedQuery, QueryExpression, QueryReading, Term
from ragdocs.search.candidates import Candidate, ExactToken, Strategy, TokenKind, Weights
from ragdocs.search.classifier import (
    classify_query,
    exact_tokens,
    foreign_question,
    token_kind,
)
from ragdocs.search.fusion import (
    FEW_CHUNKS,
    FEW_FORMS,
    FORM_CHUNKS,
    LEAST_RARE,
    Fused,
    rare_weights,
)
from ragdocs.search.query_language import count_conditions, parse_query, read_as_plain
from ragdocs.search.requests import QueryRequest, QueryType, Topic
from ragdocs.search.understanding import (
    NONE_HAS_ALL,
    NOTHING,
    NOWHERE,
    Interpreter,
    Thesaurus,
    Understanding,
    Wish,
    is_binding,
    look_up,
    make_satisfiable,
)
from ragdocs.search.vector_search import (
    Bounds,
    MeaningSearch,
    Nearest,
    Pending,
    await_vector,
    neighbour_hits,
)
from ragdocs.store.records import ChunkKey, TokenPlace

# From fused hits to candidates: everything that a stage may need is read here, once.


def few_of_each(view: View, fused: Sequence[Fused], most: int) -> list[Fused]:
    """The first `most` of each document, in the same order."""
    documents = view.documents_of([item.key for item in fused])
    taken = Counter[DocId | None]()
    kept: list[Fused] = []
    for item in fused:
        document = documents.get(item.key)
        taken[document] += 1
        if taken[document] <= most:
            kept.append(item)
    return kept


def hydrate(view: View, fused: Sequence[Fused], *, with_vectors: bool) -> list[Candidate]:
    """In the same order; chunks that are no longer in the index are skipped."""
    passages = view.passages([item.key for item in fused], with_vectors=with_vectors)
    return [
        Candidate(
            stored=found.stored,
            document=found.document,
            score=item.score,
            evidence=item.evidence,
            contributions=item.contributions,
            vector=found.vector,
            ngrams=found.ngrams,
        )
        for item in fused
        if (found := passages.get(item.key)) is not None
    ]


# One query and its hits in every index.

READ_AHEAD = 20
"""About half of the usual candidates are found by their words."""
CORRECTED_CHARS = 250
"""A mistyped query up to this length is embedded again, corrected: each takes one window."""
GRAPH_SEEDS = 10
"""How many documents have their neighbours looked at."""
GRAPH_SEED_CHUNKS = 3 * GRAPH_SEEDS
"""The number of best chunks that these documents are taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTools:
    """The tools for queries and candidates, besides the index. The embedder and the cross-encoder
    are optional.
    """

    analyzer: Analyzer
    embedder: Embedder | None = None
    cross_encoder: CrossEncoder | None = None
    thesaurus: Thesaurus | None = None


class RareDocument(NamedTuple):
    """The document whose rare words have more of the words' weight than those of any other."""

    id: DocId
    weight: float


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """All that is known of one query: what was asked, how it is understood by the documents of one
    snapshot, each index's hits, and what became of them. An ideal is the highest possible score in
    an index (1 where it is not known); a frequency is how many chunks have a word.
    """

    topic: Topic
    understanding: Understanding
    query_type: QueryType = QueryType.EXPLORATORY
    pending: Pending | None = None
    """Its vector, which is being computed."""
    is_embeddable: bool = False
    """Whether the model was given the text."""
    added: Sequence[NearTerm] = ()
    """Words that the query's vector is moved towards, with their vectors."""
    most_terms: int = MAX_SEARCHED_TERMS
    lists: Mapping[Strategy, Sequence[Hit]] = field(default_factory=dict[Strategy, Sequence[Hit]])
    ideals: Mapping[Strategy, float] = field(default_factory=dict[Strategy, float])
    frequencies: Mapping[Unit, int] = field(default_factory=dict[Unit, int])
    nearest: Nearest | None = None
    """The passages nearest in meaning; None if meaning could not be searched."""
    binding: Condition | None = None
    """The condition for every passage, whichever index finds it."""
    satisfying: int | None = None
    """How many passages satisfy the query's own conditions; None without conditions."""
    wishes: tuple[Wish, ...] = ()
    """The phrases that the question quotes, and which of the passages found contain them."""
    is_idle: bool = False
    """Only stop words, letters or digits were typed: a passage with them says nothing."""
    rare: Mapping[ChunkKey, float] = field(default_factory=dict[ChunkKey, float])
    """For the chunks with rare words: the share of all words' weight that the rare words in the
    chunk's document have.
    """
    rarest: "RareDocument | None" = None
    exact: tuple[ExactToken, ...] = ()
    passages: int = 0
    """The number of passages in all documents."""
    scorers: Mapping[Strategy, ScoresOf] = field(
        default_factory=dict[Strategy, ScoresOf], compare=False
    )
    """For the indices that may have more hits: the scores there of the other indices' hits."""
    is_degraded: bool = False
    notes: tuple[str, ...] = ()
    weights: Weights = field(default_factory=dict[Strategy, float])
    fused: Sequence[Fused] = ()
    """All hits as one list, best first; scores are in [0, 1], but for what code and links add."""
    floored: DocId | None = None
    """The document that has a place in the answer for its rare words (specs/0096)."""
    largest_rank_sum: float | None = None
    """With rank fusion, the rank sum that is a score of 1."""
    candidates: Sequence[Candidate] = ()
    """The best hits, read and judged."""
    has_more: bool = False
    """Whether the indices may have more hits than these candidates."""

    @property
    def words(self) -> int:
        """How many different words are searched."""
        return len(self.understanding.query.units)

    @property
    def has_known_words(self) -> bool:
        """Whether the documents have any of the typed words."""
        return any(self.frequencies.get(unit, 0) for unit in self.understanding.query.units)

    def coverage(self, kind: Strategy) -> float:
        """The best passage's share of the highest possible word score there, in [0, 1]."""
        hits, ideal = self.lists.get(kind), self.ideals.get(kind, 0.0)
        return min(1.0, hits[0].score / ideal) if hits and ideal > 0 else 0.0

    def is_full(self, limit: int) -> bool:
        """Whether an index may have more hits."""
        return any(len(hits) >= limit for hits in self.lists.values()) or bool(
            self.nearest and len(self.nearest.hits) >= limit
        )

    def with_list(
        self,
        strategy: Strategy,
        hits: Sequence[Hit],
        ideal: float | None = None,
        scores_of: ScoresOf | None = None,
    ) -> "RunningQuery":
        """With the hits of one index; `scores_of` if the index may have more."""
        ideals = self.ideals if ideal is None else {**self.ideals, strategy: ideal}
        scorers = self.scorers if scores_of is None else {**self.scorers, strategy: scores_of}
        lists = {**self.lists, strategy: hits}
        return replace(self, lists=lists, ideals=ideals, scorers=scorers)

    def keep_only(self, keys: Set[ChunkKey], limit: int) -> "RunningQuery":
        """The hits of these chunks only; a list shorter than the limit is complete and stays as it
        is.
        """
        lists = {
            strategy: [hit for hit in hits if len(hits) < limit or hit.key in keys]
            for strategy, hits in self.lists.items()
            if strategy is not Strategy.GRAPH
        }
        return replace(self, lists=lists)

    def with_earlier(self, earlier: "RunningQuery") -> "RunningQuery":
        """With the hits of an earlier look in the documents that this one excluded."""
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

    def with_missing_scores(self, others: Collection[ChunkKey] = ()) -> "RunningQuery":
        """With the scores in every index of each chunk that one index found, that has an exact
        token, or that is one of `others`."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A topic that is being embedded before any snapshot is open, with its share of the limits of a
    request."""

    topic: Topic
    parsed: ParsedQuery
    pending: Pending | None
    queries: int
    """The number of queries in the request."""
    most_terms: int
    most_guesses: int
    most_errors: int | None
    """Typos allowed in a word; None is as configured."""


class Retrieval:
    """Searches the indices of words here, and that of meaning in another thread."""

    def __init__(self, tools: QueryTools, settings: SearchConfig) -> None:
        self._analyzer = tools.analyzer
        self._embedder = tools.embedder
        self._settings = settings
        self._interpreter = Interpreter(tools.analyzer, tools.thesaurus, settings)
        self.meaning = MeaningSearch(tools.embedder, settings.document_weight)

    def close(self) -> None:
        self.meaning.close()

    def has_model(self) -> bool:
        """Whether meaning can be searched; loads the model."""
        if self._embedder is None:
            return False
        try:
            self._embedder.load()
        except EmbeddingError:
            return False
        return True

    def start(self, topics: Sequence[Topic], most_errors: int | None = None) -> list[Started]:
        """Needs no index, so the model works while the store is being opened."""
        parsed = [parse_query(topic.words, strict=topic.is_strict) for topic in topics]
        if len(topics) > 1:
            share = fair_share(MAX_CONDITIONS, [count_conditions(each) for each in parsed])
            parsed = [parse_query(each.words, share, strict=each.is_strict) for each in topics]
        pending = [self._embed(*each) for each in zip(topics, parsed, strict=True)]
        most_terms = MAX_SEARCHED_TERMS
        if len(topics) > 1:
            wanted = [len(compile_query(each, self._analyzer).units) for each in parsed]
            most_terms = fair_share(MAX_SEARCHED_TERMS, wanted)
        return [
            Started(
                topic=topic,
                parsed=each,
                pending=vector,
                queries=len(topics),
                most_terms=most_terms,
                most_guesses=max(1, MAX_GUESSES // len(topics)),
                most_errors=most_errors,
            )
            for topic, each, vector in zip(topics, parsed, pending, strict=True)
        ]

    def _embed(self, topic: Topic, parsed: ParsedQuery) -> Pending | None:
        if topic.meaning is None:
            return self.meaning.embed(parsed.text, QUERY_WINDOWS)
        return self.meaning.embed(topic.meaning, HYPOTHESIS_WINDOWS)

    def read(
        self, view: View, started: Started, request: QueryRequest, within: Filter
    ) -> RunningQuery:
        topic = started.topic
        query_type = request.query_type or classify_query(topic.words or topic.meaning or "")
        read = self._read(view, started, query_type)
        if started.parsed.reading is QueryReading.PHRASES:
            read = self._read_phrases(view, started, read)
        in_this = in_language(language_of(within))
        if in_this is None:
            return read
        binding = both(read.binding, in_this) or in_this
        return replace(read, binding=binding, satisfying=view.count_matching(binding))

    def _read_phrases(self, view: View, started: Started, strict: RunningQuery) -> RunningQuery:
        """Phrases and a few words bind if a passage has them all and the phrases are names."""
        as_plain = replace(started, parsed=read_as_plain(started.topic.words))
        plain = self._read(view, as_plain, strict.query_type)
        if is_binding(started.parsed, strict.satisfying, plain.wishes):
            return strict
        if strict.satisfying:
            return plain
        understood = replace(plain.understanding, notes=(*plain.understanding.notes, NOWHERE))
        return replace(plain, understanding=understood)

    def _read(self, view: View, started: Started, query_type: QueryType) -> RunningQuery:
        topic, parsed, pending = started.topic, started.parsed, started.pending
        understood = self._interpreter.read(
            view, topic.words, parsed, started.most_guesses, started.most_errors
        )
        understood = self._within_bounds(view, understood, started)
        meant = understood.did_you_mean if understood.is_all_mistyped else None
        if topic.meaning is None and meant and len(parsed.text) <= CORRECTED_CHARS:
            # The mistyped words mean nothing and would be near something by chance.
            corrected = parse_query(meant, strict=topic.is_strict)
            pending = self.meaning.embed(corrected.text, QUERY_WINDOWS - 1)
        added: Sequence[NearTerm] = ()
        # A hypothesis is long and clear: nothing is added to it.
        if topic.meaning is None and self._interpreter.may_expand(view, understood):
            vector = await_vector(pending)[0]
            understood, added = self._interpreter.expand(view, understood, vector)
        understood, satisfying = make_satisfiable(understood, self._analyzer, view.count_matching)
        quoted = understood.query.wishes[: max(1, MAX_WISHES // started.queries)]
        return RunningQuery(
            topic=topic,
            understanding=understood,
            query_type=query_type,
            pending=pending,
            is_embeddable=started.pending is not None,
            added=added,
            most_terms=started.most_terms,
            binding=understood.query.condition,
            satisfying=satisfying,
            is_idle=self._is_idle(understood.parsed.text),
            wishes=look_up(quoted, view),
        )

    def _within_bounds(
        self, view: View, understood: Understanding, started: Started
    ) -> Understanding:
        units = understood.query.units
        total = view.count_matching()
        kept = rarest(units, view.term_frequencies, started.most_terms, total, started.queries)
        return understood if len(kept) == len(units) else understood.with_units(kept)

    def find(self, view: View, read: RunningQuery, bounds: Bounds) -> RunningQuery:
        """Adds the hits of every index."""
        topic, pending, found = read.topic, read.pending, read
        searching = self.meaning.search(view, pending, read.added, bounds)
        if topic.words:
            found = self._with_wished(view, self._by_words(view, found, bounds), bounds)
            found = self._by_code(view, found, bounds)
            self._read_ahead(view, found, searching)
        vector, notes = await_vector(pending)
        language = self._language_notes(view, topic)
        notes = (*read.understanding.notes, *notes, *language, *_emptiness_notes(found))
        is_degraded = self._is_degraded(view, read, vector)
        found = replace(found, notes=notes, is_degraded=is_degraded)
        if vector is None or searching is None:
            return found
        nearest = searching.result()
        hits = _keep(view, found, nearest.hits)
        is_all = len(nearest.hits) < bounds.hits
        scores_of = None if is_all else partial(self.meaning.distances, view, nearest)
        found = found.with_list(Strategy.SEMANTIC, hits, scores_of=scores_of)
        return replace(found, nearest=nearest)

    def _language_notes(self, view: View, topic: Topic) -> tuple[str, ...]:
        """Advises to translate a question in a language of neither the model nor the documents."""
        embedder = self._embedder
        if embedder is None or not is_english_only(embedder.name):
            return ()
        question = foreign_question(topic.meaning or topic.words)
        if question is None:
            return ()
        tokens = (token for word in question.words for token in self._analyzer.tokens(word))
        terms = tuple({token.term for token in tokens})
        counts = view.term_frequencies(terms)
        known = {term: counts.get(term, 0) for term in terms}
        if question.is_spoken(known, view.count_chunks()):
            return ()
        return (question.note(PurePath(embedder.name).name),)

    def _is_degraded(self, view: View, read: RunningQuery, vector: object) -> bool:
        """Whether meaning should have been searched and could not be."""
        if self._embedder is None or not view.has_vectors:
            return True
        return read.is_embeddable and vector is None

    def _read_ahead(
        self, view: View, found: RunningQuery, searching: "Future[Nearest] | None"
    ) -> None:
        """Reads the chunks that will probably be needed, while meaning is still being searched."""
        if searching is not None and not searching.done():
            hits = found.lists[Strategy.KEYWORD][:READ_AHEAD]
            view.chunks_by_key([hit.key for hit in hits])

    def _by_words(self, view: View, found: RunningQuery, bounds: Bounds) -> RunningQuery:
        query = found.understanding.query
        search = partial(view.search_words, within=bounds.within)
        hits = search_in_tiers(search, query, bounds.hits)
        is_all = len(hits.hits) < bounds.hits
        scores_of = None if is_all else hits.scores_of
        kept = _keep(view, found, hits.hits)
        found = replace(
            found.with_list(Strategy.KEYWORD, kept, hits.ideal, scores_of),
            frequencies=hits.frequencies,
            exact=self._find_exact(view, found, bounds.within),
            passages=view.count_matching(),
        )
        return self._with_rare(view, found)

    def _find_exact(
        self, view: View, found: RunningQuery, within: Filter
    ) -> tuple[ExactToken, ...]:
        understood = found.understanding
        if understood.query.condition is not None:
            return ()
        exact: list[ExactToken] = []
        text = understood.parsed.text
        tokens = exact_tokens(text)
        is_word = found.topic.is_name and not tokens and not found.is_idle
        for token in [text] if is_word else tokens:
            keys = self._chunks_with_token(view, token)
            if keys is None or (is_word and not keys):  # other words may mean the same
                continue
            places = view.token_places(token, keys)
            if not is_word:
                # Others may have the same words in another spelling: `IL 10` for `IL-10`.
                written = [place for place in places if place.is_written]
                if token.isalpha() and token.isupper():  # `PASSWORD` is a word, `ENOENT` a name
                    written = [place for place in written if place.is_same_case]
                if places and not written and token.isalpha():  # a word of the same stem
                    continue
                places = written or places
            kept = view.matching(both(found.binding, within), [place.key for place in places])
            kind = TokenKind.NAME if is_word else token_kind(token)
            exact.append(ExactToken(frozenset(kept), count_distinct_documents(places), kind))
        return tuple(exact)

    def _is_idle(self, text: str) -> bool:
        is_stop_word = self._analyzer.is_stop_word
        words = (word.strip(string.punctuation) for word in text.split())
        return all(is_stop_word(word) or (len(word) < 2 and word.isascii()) for word in words)

    def _chunks_with_token(self, view: View, token: str) -> Set[ChunkKey] | None:
        """None if it says nothing: too many chunks have it, or it is not a word."""
        unit = token_unit(token, self._analyzer)
        if unit is None or view.count_matching(unit) > FEW_CHUNKS:
            return None
        return view.matching(unit)

    def _with_rare(self, view: View, found: RunningQuery) -> RunningQuery:
        """Words that only one document has in this form are rare, whatever their stems."""
        frequencies = {unit: found.frequencies[unit] for unit in found.understanding.query.units}
        own = self._own_forms(view, found.understanding, frequencies)
        counts = frequencies | {unit: len(keys) for unit, keys in own.items()}
        weights = rare_weights(found.passages, counts)
        if sum(weights.values()) <= LEAST_RARE:
            return found
        having = {unit: own[unit] if unit in own else view.matching(unit) for unit in weights}
        every = {key for keys in having.values() for key in keys}
        owners = view.documents_of(every)
        of_document: defaultdict[DocId, float] = defaultdict(float)
        for unit, keys in having.items():
            for document in {owners[key] for key in keys if key in owners}:
                of_document[document] += weights[unit]
        rare = {key: of_document[owners[key]] for key in every if key in owners}
        return replace(found, rare=rare, rarest=_rarest(of_document))

    def _own_forms(
        self, view: View, understood: Understanding, frequencies: Mapping[Unit, int]
    ) -> dict[Unit, Set[ChunkKey]]:
        """The chunks with words that, in the typed form, only one document has. One such word may
        be there by chance (`recommends`), two are not.
        """
        if understood.parsed.is_strict:
            return {}
        text = understood.parsed.text
        tokens = self._analyzer.query(text)
        forms = {Unit((each.term,)): fold(text[each.start : each.end]) for each in tokens}
        forms = {unit: form for unit, form in forms.items() if frequencies.get(unit, 0) > 0}
        alone = view.words_in_one_document(forms.values())
        found = {unit: form for unit, form in forms.items() if form in alone}
        if len(found) < FEW_FORMS or max(map(frequencies.__getitem__, found)) > FORM_CHUNKS:
            return {}
        having = {unit: with_word(view, form, view.matching(unit)) for unit, form in found.items()}
        owners = view.documents_of(_union(having.values()))
        of_unit = {unit: {owners[key] for key in keys} for unit, keys in having.items()}
        counts = Counter(next(iter(one)) for one in of_unit.values() if len(one) == 1)
        most = {document for document, count in counts.items() if count >= FEW_FORMS}
        return {
            unit: having[unit] for unit, one in of_unit.items() if len(one) == 1 and one <= most
        }

    def _with_wished(self, view: View, found: RunningQuery, bounds: Bounds) -> RunningQuery:
        """Adds passages with a quoted phrase that rank behind all hits of its words."""
        hits = {hit.key: hit for hit in found.lists[Strategy.KEYWORD]}
        for wish in found.wishes:
            if wish.strength <= 0 or len(view.matching(wish.unit, hits)) == wish.passages:
                continue
            query = KeywordQuery(found.understanding.query.units, condition=wish.unit)
            more = view.search_words(query, bounds.hits, bounds.within)
            hits.update({hit.key: hit for hit in _keep(view, found, more.hits)})
        if len(hits) == len(found.lists[Strategy.KEYWORD]):
            return found
        ranked = sorted(hits.values(), key=lambda hit: (-hit.score, hit.key))
        return found.with_list(Strategy.KEYWORD, ranked)

    def _by_code(self, view: View, found: RunningQuery, bounds: Bounds) -> RunningQuery:
        if not self._settings.code_search_enabled:
            return found
        text = found.understanding.parsed.text
        code = view.search_code(text, bounds.hits, bounds.within, most_terms=found.most_terms)
        hits = _keep(view, found, code.hits)
        return found.with_list(Strategy.CODE, hits, code.ideal, code.scores_of)

    def neighbours(
        self, view: View, found: RunningQuery, fused: Sequence[Fused], within: Filter
    ) -> list[Hit]:
        """The best passages of documents that are linked with those found."""
        if self._settings.graph_weight <= 0:
            return []
        linked = view.neighbours(
            _best_documents(view, fused), depth=self._settings.graph_depth, within=within
        )
        vector = None if found.nearest is None else found.nearest.vector
        weight = self._settings.graph_neighbor_weight
        return _keep(view, found, neighbour_hits(view, linked, vector, weight))


def _keep(view: View, found: RunningQuery, hits: Sequence[Hit]) -> list[Hit]:
    """The hits that satisfy the binding condition."""
    if found.binding is None:
        return list(hits)
    kept = view.matching(found.binding, [hit.key for hit in hits])
    return [hit for hit in hits if hit.key in kept]


def with_word(view: View, word: str, keys: Collection[ChunkKey]) -> frozenset[ChunkKey]:
    """The chunks whose text has the word by itself, in either case."""
    by_itself = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    found = view.texts_with(word, keys)
    return frozenset(key for key, text in found.items() if by_itself.search(text))


def _rarest(weights: Mapping[DocId, float]) -> RareDocument | None:
    """None if two have the same weight."""
    ranked = sorted(weights.items(), key=lambda each: -each[1])
    if not ranked or (len(ranked) > 1 and ranked[1][1] >= ranked[0][1]):
        return None
    return RareDocument(*ranked[0])


def _union(sets: Iterable[Set[ChunkKey]]) -> frozenset[ChunkKey]:
    return frozenset[ChunkKey]().union(*sets)


def count_distinct_documents(places: Sequence[TokenPlace]) -> int:
    """How many documents have these places; documents with the same texts count as one."""
    texts: defaultdict[DocId, set[bytes | None]] = defaultdict(set)
    for place in places:
        texts[place.document].add(place.text_hash)
    return len({frozenset(each) for each in texts.values()})


def fair_share(most: int, wanted: Sequence[int]) -> int:
    """The maximum for each, so that all together have at most `most`: those that want less leave
    the rest to the others.
    """
    left = most
    for served, count in enumerate(sorted(wanted)):
        share = left // (len(wanted) - served)
        if count > share:
            return share
        left -= count
    return most


def _emptiness_notes(found: RunningQuery) -> tuple[str, ...]:
    """Notes on a strict query that no passage can fulfil."""
    query = found.understanding.query
    if found.satisfying == 0:
        return (NONE_HAS_ALL if _is_of_words(found.understanding.parsed.expression) else NOTHING,)
    if query.condition is not None and not query.units:
        return ("this query has only filters: add words to search for",)
    return ()


def _is_of_words(expression: QueryExpression | None) -> bool:
    """Without any operator, so the request itself is strict."""
    words = expression.expressions if isinstance(expression, And) else (expression,)
    return all(isinstance(word, Term) for word in words)


def _best_documents(view: View, fused: Sequence[Fused]) -> dict[DocId, float]:
    """The first documents with their best scores."""
    first = fused[:GRAPH_SEED_CHUNKS]
    owners = view.documents_of([item.key for item in first])
    best: dict[DocId, float] = {}
    for item in first:
        if item.key in owners and len(best) < GRAPH_SEEDS:
            best.setdefault(owners[item.key], item.score)
    return best
