"""Every setting changes an answer or the index through the real path, and a setting of which
`check-config` says that it has no effect has none.

Each row gives the settings beside which one is looked at, and two values of it. The index is
opened as a Python program does; what is seen is all passages and the answers to all questions.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from ragdocs import open_index
from ragdocs.config.loading import read_config
from ragdocs.config.locations import user_file
from ragdocs.config.problems import ANY, key_text, settings
from ragdocs.config.settings import NEEDS
from ragdocs.library.requests import ListKind, ListRequest
from tests.support.indexes import write, write_all
from tests.support.mcp_clients import ServerProcess
from tests.support.models import MeaningModel
from tests.support.program import called

LONG = "It is long and says little that matters. " * 12
WORDED = "The kestrel hovers above the meadow and looks for mice that hide in the grass below it"
NOTES = {
    "near.md": "# One\n\nThe dawn is grey.\n",
    "named.md": "# Two\n\nA sunrise at midday is no midday and no midday at all.\n",
    "about.md": "# A\n\n## A one\n\nThe dawn and a noon.\n\n## A two\n\nThe dawn once more.\n",
    "mention.md": "# B\n\n## B one\n\nDusk, dusk.\n\n## B two\n\nDawn dawn dawn noon noon.\n",
    "steady.md": "# A\n\nA harbour, dawn, midday and midday and midday.\n",
    "extreme.md": f"# B\n\nThe dawn. {LONG} A harbour.\n",
    "words.md": "# Harbour\n\nThe harbour master at sunset.\n",
    "apart.md": "# A\n\nA harbour with boats, and far away from there a master. Harbour.\n",
    "storm.md": "# C\n\nA storm over the sea.\n",
    "boat.md": "# One\n\nUse `blue_boat` when it is midday.\n",
    "prose.md": "# Notes\n\nThe token of the queue is a token; the queue has a token.\n",
    "block.md": f"# Client\n\n{LONG}\n\n```js\nlet queueToken;\n```\n",
    "start.md": "# Start\n\nA heron stands here. See [[second]].\n",
    "second.md": "# Second\n\nNothing of that kind. See [[third]].\n",
    "third.md": "# Third\n\nNothing here either.\n",
    "weak.md": f"# Weak\n\n{LONG} A heron.\n",
    "leader.md": "# Otter\n\nThe otter. See [[member]].\n",
    "member.md": "# Pond\n\nWhere an otter may be found, with frogs and newts. See [[leader]].\n",
    "stranger.md": "# Brook\n\nWhere an otter may be found now and then.\n",
    "one.md": f"# A\n\n{WORDED}.\n",
    "two.md": f"# A\n\n{WORDED} now.\n",
    "alike.md": "# A\n\nThe falcon hovers at dawn, and a mouse hides.\n",
    "alike2.md": "# B\n\nAt sunrise, or at noon, some falcon was in the air.\n",
    "alike3.md": "# C\n\nIn a storm there is no falcon to be seen at all, which is known.\n",
    "manual.md": "# Manual\n\n## Birds\n\n### Falcons\n\nThe wagtail is small.\n\n### Hawks\n\n"
    "Not a wagtail at all.\n\n### Owls\n\nThey fly by night.\n\n## Beasts\n\n### Otters\n\n"
    "A wagtail sits on one.\n",
    "long.md": "# Long\n\n" + "\n\n".join(f"Part {n} of the tale. " * 20 for n in range(9)) + "\n",
    "split.md": f"# Split\n\n{LONG}\n\nThe tempest, a tempest.\n\n{LONG}\n\n{LONG}\n",
    "old.md": "---\ndate: 2020-05-05\n---\n# A\n\nThe heron stands in the water.\n",
    "fields.md": "---\ntitle: Plover\nkeywords: [plover]\ndescription: plover\ntags: [plover]\n"
    "aliases: [plover]\nauthor: Plover\n---\n# Plover\n\nNothing, no more than that.\n",
    "plover/text.md": "# T\n\nSome words on a plover here, no more than that.\n",
    "coast.md": "# Coast\n\nThe lighthouse is white.\n",
    "katzen.md": "# Notiz\n\nDie Katzen schlafen.\n",
    "left.txt": "A kiwi in a text file.\n",
    "ignored.md": "# Ignored\n\nA kiwi that git leaves out.\n",
    ".gitignore": "ignored.md\n",
}
HOME = {"home/notes.md": "# Note\n\nThe heron stands in the reeds, they said.\n"}
QUESTIONS = (
    "sunrise", "sunrise harbour", "harbour master", "tempest", "blue_boat", "queue token", "heron",
    "otter", "kestrel meadow", "falcon", "wagtail", "part of the tale", "plover", "lighthose",
    "Katze", "kiwi",
)  # fmt: skip
BASE = {
    "chunking.min_leaf_chars": 0,
    "chunking.max_leaf_chars": 600,
    "chunking.min_document_chars": 0,
    "search.cutoff_ratio": 0.0,
}
INDEXED = ("chunking.", "indexing.", "tree.", "search.stemmer", "search.keyword_engine")
"""What begins so decides what is in the index: it has an index of its own."""

SCORE, RRF = {"search.fusion": "score"}, {"search.fusion": "rrf"}
PARENTS = {"chunking.parent_retrieval_enabled": True}
DEDUP = {"search.dedup_enabled": True}
MMR = {"search.mmr_enabled": True}
SPREAD = {"search.advanced.dynamic_weights_enabled": True}
TREES = {"tree.docs.path": "docs", "tree.home.path": "home"}
UNBALANCED = {"search.balance_enabled": False}
NO_EXPANSION = {"search.query_expansion_enabled": False}

# Setting → what it stands beside, one value, another value.
ROWS = {
    "indexing.include": ({}, ["**/*.md"], ["**/*.txt"]),
    "indexing.exclude": ({}, [], ["heron*", "start.md"]),
    "indexing.respect_gitignore": ({}, True, False),
    "indexing.max_file_bytes": ({}, 100, 10_000_000),
    "chunking.min_leaf_chars": ({}, 0, 300),
    "chunking.max_leaf_chars": ({}, 600, 300),
    "chunking.min_document_chars": ({}, 0, 1200),
    "chunking.overlap_chars": ({}, 0, 300),
    "chunking.parent_retrieval_enabled": ({}, False, True),
    "chunking.parent_chunk_min_chars": (PARENTS, 0, 1900),
    "chunking.parent_chunk_max_chars": (PARENTS, 1500, 4000),
    "chunking.parent_overlap_chars": (PARENTS, 0, 300),
    "chunking.child_chunk_min_chars": (PARENTS, 0, 500),
    "chunking.child_chunk_max_chars": (PARENTS, 500, 1000),
    "search.semantic_weight": ({}, 0.0, 5.0),
    "search.keyword_weight": ({}, 0.0, 5.0),
    "search.balance_enabled": (SCORE, False, True),
    "search.document_weight": ({}, 0.0, 1.0),
    "search.closeness_weight": (SCORE, 0.0, 1.0),
    "search.resemblance_weight": (SCORE, 0.0, 1.0),
    "search.filter": ({}, "", "-author:plover"),
    "search.graph_weight": ({}, 0.0, 1.0),
    "search.code_search_enabled": (UNBALANCED, False, True),
    "search.code_search_weight": (UNBALANCED, 0.01, 2.0),
    "search.fusion": ({}, "score", "rrf"),
    "search.rrf_k_constant": (RRF, 0, 1000),
    "search.recency_bias": ({}, 0.0, 1.0),
    "search.min_confidence": ({}, 0.0, 0.9),
    "search.score_calibration_threshold": ({}, 0.2, 0.9),
    "search.score_calibration_steepness": ({}, 1.0, 50.0),
    "search.max_chunks_per_doc": ({"search.merge_threshold": 0}, 0, 1),
    "search.dedup_enabled": ({}, False, True),
    "search.dedup_similarity_threshold": (DEDUP, 0.5, 1.0),
    "search.ngram_dedup_enabled": ({}, False, True),
    "search.ngram_dedup_threshold": ({}, 0.7, 1.0),
    "search.mmr_enabled": ({}, False, True),
    "search.mmr_lambda": (MMR, 0.0, 1.0),
    "search.adaptive_weights_enabled": ({}, False, True),
    "search.query_expansion_enabled": ({}, False, True),
    "search.query_expansion_max_words": ({}, 1, 0),
    "search.query_expansion_max_terms": ({}, 0, 10_000),
    "search.stemmer": ({"search.fuzzy_distance": 0}, "english", "german"),
    "search.fuzzy_distance": ({}, 0, 1),
    "search.merge_threshold": ({}, 0, 2),
    "search.merge_bonus": ({}, 0.0, 2.0),
    "search.max_merge_depth": ({"search.merge_threshold": 1}, 6, 0),
    "search.max_merge_bytes": ({}, 20, 4000),
    "search.first_result_tokens": ({}, 0, 600),
    "search.result_tokens": ({}, 0, 20),
    "search.cutoff_ratio": ({}, 0.0, 0.9),
    "search.candidate_limit": ({}, 0, 1),
    "search.tree_normalisation": (TREES, 0.0, 1.0),
    "search.graph_depth": ({}, 1, 2),
    "search.graph_neighbor_weight": ({}, 0.02, 1.0),
    **{
        f"search.boosts.{name}": ({}, 0.05, 20.0)
        for name in (
            "title", "headers", "keywords", "description", "tags", "path", "aliases", "author",
            "content",
        )
    },
    "search.advanced.dynamic_weights_enabled": ({}, False, True),
    "search.advanced.variance_threshold": (SPREAD, 0.0, 1.0),
    "search.advanced.min_weight_factor": (SPREAD, 1.0, 0.0),
}  # fmt: skip

# Setting → settings beside which it has no effect.
IDLE = {
    "indexing.include": {
        "tree.docs.path": "docs", "tree.docs.include": ["*.md", "**/*.md"],
    },
    "chunking.min_leaf_chars": PARENTS,
    "chunking.max_leaf_chars": PARENTS,
    "chunking.parent_chunk_min_chars": {},
    "chunking.parent_chunk_max_chars": {},
    "chunking.parent_overlap_chars": {},
    "chunking.child_chunk_min_chars": {},
    "chunking.child_chunk_max_chars": {},
    "search.balance_enabled": RRF,
    "search.closeness_weight": RRF,
    "search.resemblance_weight": RRF,
    "search.rrf_k_constant": SCORE,
    "search.graph_weight": {"search.graph_depth": 0},
    "search.code_search_weight": {"search.code_search_enabled": False},
    "search.dedup_enabled": MMR,
    "search.dedup_similarity_threshold": {},
    "search.ngram_dedup_threshold": {"search.ngram_dedup_enabled": False},
    "search.mmr_lambda": {},
    "search.query_expansion_max_words": NO_EXPANSION,
    "search.query_expansion_max_terms": NO_EXPANSION,
    "search.merge_bonus": {"search.merge_threshold": 0},
    "search.max_merge_depth": {"search.merge_threshold": 0},
    "search.max_merge_bytes": {"search.merge_threshold": 0},
    "search.tree_normalisation": {},
    "search.graph_depth": {"search.graph_weight": 0.0},
    "search.graph_neighbor_weight": {"search.graph_weight": 0.0},
    "search.advanced.variance_threshold": {},
    "search.advanced.min_weight_factor": {},
}  # fmt: skip

# Settings that need a clock, a model, a process or a place of their own: the tests that have them,
# and what stands there for the setting if not its name.
ELSEWHERE = {
    "indexing.documents_path": "integration/test_cli_reading.py",
    "indexing.index_path": "integration/test_cli_indexing.py",
    "indexing.debounce_seconds": "unit/test_watcher.py#debounce_seconds",
    "indexing.rescan_interval_seconds": "unit/test_watcher.py#rescan_seconds=0.1",
    "indexing.watch": "integration/test_index_service.py",
    "context.terms": "integration/test_library.py",
    "context.min_term_frequency": "integration/test_library.py",
    "context.min_word_length": "integration/test_library.py",
    "context.max_word_length": "integration/test_library.py",
    "context.rules": "integration/test_cli_reading.py",
    "search.rerank_enabled": "integration/test_rerank.py",
    "search.rerank_model": "integration/test_rerank.py",
    "search.rerank_top_n": "integration/test_rerank.py",
    "search.rerank_weight": "integration/test_rerank.py",
    "search.synonyms_enabled": "integration/test_expansion.py",
    "search.keyword_engine": "integration/test_keyword_engine_end_to_end.py",
    "search.local_boost": "integration/test_settings.py#RAGDOCS_SEARCH__LOCAL_BOOST",
    "search.advanced.community_detection_enabled": "integration/test_switches.py",
    "search.advanced.community_boost_factor": "integration/test_switches.py",
    "search.advanced.hyde_enabled": "integration/test_switches.py",
    "lint.select": "integration/test_lint.py#RAGDOCS_LINT__SELECT",
    "lint.ignore": "integration/test_lint.py#RAGDOCS_LINT__IGNORE",
    "lint.stale_days": "integration/test_lint.py#RAGDOCS_LINT__STALE_DAYS",
    "lint.near_copy_threshold": "integration/test_lint.py#RAGDOCS_LINT__NEAR_COPY_THRESHOLD",
    "terminal.links": "integration/test_cli_terminal.py#RAGDOCS_TERMINAL__LINKS",
    "embedding.provider": "unit/test_embedding_providers.py",
    "embedding.model": "unit/test_embedding_providers.py",
    "embedding.model_file": "unit/test_onnx_embedder.py",
    "embedding.pooling": "unit/test_onnx_embedder.py",
    "embedding.query_prefix": "extras/test_huggingface.py",
    "embedding.passage_prefix": "extras/test_huggingface.py",
    "embedding.batch_size": "unit/test_http_embedder.py",
    "embedding.threads": "unit/test_embedding_builtin.py",
    "embedding.device": "extras/test_huggingface.py",
    "embedding.cache_folder": "unit/test_embedding_providers.py",
    "embedding.local_files_only": "extras/test_huggingface.py",
    "embedding.url": "integration/test_network.py",
    "embedding.allow_remote": "integration/test_network.py",
    "embedding.timeout_seconds": "unit/test_http_embedder.py#timeout=0.2",
    "embedding.retries": "unit/test_http_embedder.py",
    "embedding.class_name": "extras/test_llama_index.py",
    "embedding.arguments": "extras/test_llama_index.py",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """All passages and all answers with some settings, as a Python program sees them."""
    folder = tmp_path_factory.mktemp("settings")
    write_all(folder / "docs", NOTES)
    write_all(folder, HOME)

    @cache
    def observe(chosen: str) -> str:
        given = json.loads(chosen)
        own = sorted(one for one in given.items() if one[0].startswith(INDEXED))
        index = folder / f"index-{abs(hash(json.dumps(own)))}"
        tables = nested({**given, "indexing.index_path": str(index)}, folder)
        docs = None if "tree" in tables else folder / "docs"
        with open_index(docs, settings=tables, embedder=MeaningModel()) as opened:
            listed = opened.library.list(ListRequest(kind=ListKind.CHUNKS, limit=200))
            answers = [opened.search(question, top_n=50) for question in QUESTIONS]
        told = [[told_of(each) for each in answer.results] for answer in answers]
        return json.dumps([str(listed), told, [list(answer.notes) for answer in answers]])

    def look(*parts):
        merged = {key: value for part in (BASE, *parts) for key, value in part.items()}
        return observe(json.dumps(merged, sort_keys=True))

    return look


def told_of(result) -> list[str]:
    return [result.id, result.text, f"{result.score:.6f}", f"{result.confidence:.6f}"]


def nested(given, folder=Path()) -> dict:
    tables: dict = {}
    for key, value in given.items():
        *above, name = key.split(".")
        table = tables
        for part in above:
            table = table.setdefault(part, {})
        is_tree = key.startswith("tree.") and name == "path"
        table[name] = str(folder / str(value)) if is_tree else value
    return tables


@pytest.mark.parametrize("key", ROWS)
def test_a_setting_changes_an_answer_or_the_index(seen, key):
    beside, one, other = ROWS[key]
    assert seen(beside, {key: one}) != seen(beside, {key: other})


@pytest.mark.parametrize("key", IDLE)
def test_a_setting_that_is_said_to_have_no_effect_has_none(seen, key):
    _, one, other = ROWS[key]
    assert seen(IDLE[key], {key: one}) == seen(IDLE[key], {key: other})


def default_of(key):
    usual = settings()[tuple(key.split("."))].default
    return list(usual) if isinstance(usual, tuple) else usual


def idle_settings(folder, *parts) -> set[str]:
    merged = {key: value for part in parts for key, value in part.items()}
    tables = nested(merged, folder)
    if "tree" not in tables:
        tables["indexing"] = {**tables.get("indexing", {}), "documents_path": str(folder)}
    reading = read_config(cwd=folder, environ={"HOME": str(folder)}, flags=tables)
    assert reading.problems == ()
    return {note.key for note in reading.notes if "has no effect" in note.message}


@pytest.mark.parametrize("key", IDLE)
def test_check_config_names_it_where_it_has_no_effect_and_not_where_it_has(tmp_path, key):
    beside, *values = ROWS[key]
    (tmp_path / "docs").mkdir()
    (tmp_path / "home").mkdir()
    usual = default_of(key)
    unusual = next(value for value in values if value != usual)
    assert key in idle_settings(tmp_path, IDLE[key], {key: unusual})
    assert key not in idle_settings(tmp_path, beside, {key: unusual})
    assert key not in idle_settings(tmp_path, IDLE[key], {key: usual})


BEYOND = {
    "indexing.debounce_seconds": ({"indexing.watch": False}, 1.0, {}),
    "indexing.rescan_interval_seconds": ({"indexing.watch": False}, 60.0, {}),
    "search.rerank_model": ({}, "other", {"search.rerank_enabled": True}),
    "search.rerank_top_n": ({}, 5, {"search.rerank_enabled": True}),
    "search.rerank_weight": ({}, 0.5, {"search.rerank_enabled": True}),
    "search.local_boost": ({}, 2.0, None),
    "search.advanced.community_boost_factor": (
        {"search.advanced.community_detection_enabled": False}, 2.0, {},
    ),
    "embedding.model": (
        {"embedding.provider": "llama-index", "embedding.class_name": "a:B"},
        "other", {"embedding.provider": "huggingface"},
    ),
    **{
        f"embedding.{name}": ({}, value, {"embedding.provider": "huggingface"})
        for name, value in (
            ("query_prefix", "q: "), ("passage_prefix", "p: "), ("batch_size", 4),
            ("device", "cpu"), ("local_files_only", True),
        )
    },
    **{
        f"embedding.{name}": ({"embedding.provider": "http"}, value, {})
        for name, value in (("threads", 2), ("cache_folder", "models"))
    },
    **{
        f"embedding.{name}": ({}, value, {"embedding.provider": "http"})
        for name, value in (
            ("url", "http://127.0.0.1:1/v1"), ("allow_remote", True), ("timeout_seconds", 5.0),
            ("retries", 1),
        )
    },
    "embedding.model_file": ({}, "onnx/a.onnx", {"embedding.provider": "onnx"}),
    "embedding.pooling": ({}, "cls", {"embedding.provider": "onnx"}),
    "embedding.class_name": ({}, "a:B", {"embedding.provider": "llama-index"}),
    "embedding.arguments": (
        {}, {"a": 1}, {"embedding.provider": "llama-index", "embedding.class_name": "a:B"},
    ),
}  # fmt: skip
"""Needs that no answer of this corpus shows: without effect beside the first, with one beside the
last (None: it takes trees of both scopes)."""


@pytest.mark.parametrize("key", BEYOND)
def test_check_config_names_other_settings_without_effect(tmp_path, key):
    idle, value, active = BEYOND[key]
    assert key in idle_settings(tmp_path, idle, {key: value})
    if active is not None:
        assert key not in idle_settings(tmp_path, active, {key: value})


def test_every_need_is_shown_by_one_of_these():
    assert {*IDLE, *BEYOND} == set(NEEDS)
    assert not IDLE.keys() & BEYOND.keys()


def test_every_setting_is_in_one_of_these_tables():
    every = {key_text(path) for path in settings() if ANY not in path} - {"root"}
    assert {*ROWS, *ELSEWHERE} == every
    tests = Path(__file__).parents[1]
    for key, place in ELSEWHERE.items():
        file, _, word = place.partition("#")
        text = (tests / file).read_text(encoding="utf-8")
        assert (word or key.rpartition(".")[2]) in text, f"{file} does not set {key}"


# The same through the command line.

IDLE_FILE = """[search]
rrf_k_constant = 20
synonyms_enabled = true

[chunking]
child_chunk_max_chars = 500
"""


def test_the_command_line_and_doctor_name_settings_without_effect(tmp_path, monkeypatch):
    monkeypatch.setattr("ragdocs.search.wordnet._SYSTEM_FOLDERS", ())
    monkeypatch.setattr("ragdocs.search.wordnet._CARRIER", "no-such-package")
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "WNHOME": ""}
    write(tmp_path, "docs/.ragdocs.toml", IDLE_FILE)
    write(tmp_path, "docs/a.md", "# A\n")
    named = ("search.rrf_k_constant", "search.synonyms_enabled", "chunking.child_chunk_max_chars")
    checked = called(tmp_path / "docs", "check-config", **home)
    told = json.loads(called(tmp_path / "docs", "check-config", "--json", **home).stdout)
    examined = called(tmp_path / "docs", "doctor", **home).stdout
    assert checked.returncode == 0
    assert {note["key"] for note in told["notes"]} == set(named)
    for key in named:
        assert f"{key}: has no effect " in checked.stdout
        assert f"{key}: has no effect " in examined


def test_local_boost_prefers_the_projects_trees_on_the_real_path(tmp_path, one_model):
    """The other tree is in the user's own file."""
    write(tmp_path, "mine/everywhere.md", "# A\n\nThe heron stands in the water.\n")
    write(tmp_path, "work/docs/here.md", "# B\n\nThe heron stands in the water there, they said.\n")
    write(tmp_path, "work/.ragdocs.toml", '[tree.docs]\npath = "docs"\n')
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "user"), "RAGDOCS_SEARCH__SEMANTIC_WEIGHT": "0"}
    own = user_file(environ)
    assert own is not None
    own.parent.mkdir(parents=True)
    own.write_text(f'[tree.mine]\npath = "{tmp_path / "mine"}"\n', encoding="utf-8")
    environ["RAGDOCS_INDEXING__INDEX_PATH"] = str(tmp_path / "ix")

    def paths(boost):
        environ["RAGDOCS_SEARCH__LOCAL_BOOST"] = boost
        done = called(tmp_path / "work", "query", "heron", "--json", **environ)
        return [result["path"] for result in json.loads(done.stdout)["results"]]

    assert paths("1") == ["everywhere.md", "here.md"]
    assert paths("3") == ["here.md", "everywhere.md"]


def test_query_type_acts_with_the_default_settings(tmp_path, one_model):
    """It was told, and changed nothing: adaptive weights were off."""
    # All have both words: where they are rare they have a share of their own, whatever the type.
    for number in range(10):
        write(tmp_path, f"docs/{number}.md", f"# Day {number}\n\nA boat was seen on the sea.\n")
    write(tmp_path, "docs/boat.md", "# Boat\n\nUse the boat at sea when it is midday.\n")
    write(tmp_path, "docs/ship.md", "# Ship\n\nA vessel, no boat, that sails on the sea.\n")
    place = {"RAGDOCS_INDEXING__INDEX_PATH": str(tmp_path / "ix")}

    def explained(kind):
        words = ("query", "boat at sea", "--docs", ".", "--query-type", kind, "--json", "--explain")
        answer = json.loads(called(tmp_path / "docs", *words, **place).stdout)
        [query] = answer["explanation"]["queries"]
        return query["weights"], [result["score"] for result in answer["results"]]

    (factual, scores), (exploratory, others) = map(explained, ("factual", "exploratory"))
    assert share_of_words(factual) > share_of_words(exploratory)
    assert scores != others
    with ServerProcess(
        "-m", "ragdocs", "mcp", "--docs", str(tmp_path / "docs"), "--index", str(tmp_path / "ix")
    ) as server:
        server.initialize()
        asked = {"query": "boat at sea", "query_type": "factual", "explain": True}
        answer = server.call(1, "query_documents", **asked)["result"]["structuredContent"]
    [query] = answer["explanation"]["queries"]
    assert share_of_words(query["weights"]) == pytest.approx(share_of_words(factual), abs=0.001)


def share_of_words(weights) -> float:
    return weights["keyword"] / (weights["keyword"] + weights["semantic"])
