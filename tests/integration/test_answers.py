"""What an answer carries besides its passages: marks, budget, state, explanation, hypotheses."""

from math import prod

import pytest

from ragdocs.errors import QueryError
from ragdocs.search.budget import Extent, tokens
from ragdocs.search.candidates import Strategy
from ragdocs.search.confidence import question_evidence, worth
from ragdocs.search.requests import QueryRequest
from ragdocs.search.responses import Readiness
from tests.support.engine import Engine

LONG = "\n\n".join(f"Paragraph {n} says how tokens are refreshed with care." for n in range(30))
GARDEN = "# Garden\n\nTomatoes need sun.\nThey also need water, and watering cans.\n"
NOTES = {
    "auth.md": f"# Authentication\n\n## Token refresh\n\n{LONG}\n\n## Logout\n\nEnd the session.\n",
    "garden.md": GARDEN.replace("\n", "\r\n"),
    "copy.md": GARDEN,
    "réseau.md": "# Réseau\n\nLe café est près du réseau.\n",
    "code.md": "# Code\n\n```py\ndef get_auth_token(): ...\n```\n",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with Engine(tmp_path_factory.mktemp("index"), NOTES) as engine:
        yield engine


@pytest.mark.parametrize(
    ("query", "path", "marked"),
    [
        ("watering", "garden.md", ["water", "watering"]),
        ("réseau", "réseau.md", ["Réseau", "réseau"]),
        ('"tomatoes need"', "garden.md", ["Tomatoes need"]),
        ("refreshd", "auth.md", ["refreshed"]),
    ],
)
def test_matches_are_the_files_bytes(engine, query, path, marked):
    results = [r for r in engine.ask(query, top_n=20).results if r.path == path]
    found = []
    for result in results:
        data = NOTES[path].encode()
        for match in result.matches:
            assert result.text[match.start : match.end] == data[
                match.byte_start : match.byte_end
            ].decode().replace("\r\n", "\n")
            line = NOTES[path].splitlines()[match.line_start - 1]
            assert result.text[match.start : match.end] in line
            found.append(result.text[match.start : match.end])
    assert set(found) >= set(marked)


def test_a_snippet_shows_the_match_and_marks_it(engine):
    (first, *_) = engine.ask("watering cans").results
    assert "**watering cans**" in first.snippet.highlighted or (
        "**watering** **cans**" in first.snippet.highlighted
    )
    assert len(first.snippet.text) < 200


def test_several_queries_mark_one_result_together(engine):
    found = {result.path: result for result in engine.ask("sun", "cans", top_n=20).results}
    result = found.get("garden.md") or found["copy.md"]
    assert {result.text[m.start : m.end] for m in result.matches} == {"sun", "cans"}


def test_a_correction_is_offered_and_searched(engine):
    response = engine.ask("end the sesion")
    assert response.did_you_mean == "end the session"
    # The tiny model knows no meanings: words alone must do.
    by_words = engine.answer(QueryRequest(queries=("end the sesion",)), semantic_weight=0)
    assert by_words.results[0].heading_path[-1] == "Logout"
    assert engine.ask("end the session").did_you_mean is None


def test_a_budget_is_kept_and_says_what_is_missing(engine):
    whole = engine.ask("tokens refreshed", top_n=10)
    assert whole.left_out == ()
    small = engine.ask("tokens refreshed", top_n=10, max_tokens=150)
    assert sum(tokens(result.text) for result in small.results) <= 150
    assert {each.extent for each in small.left_out} <= {
        Extent.SHORTENED,
        Extent.CITED,
        Extent.LEFT_OUT,
    }
    given = {result.id for result in small.results}
    missing = {each.id for each in small.left_out if each.extent is Extent.LEFT_OUT}
    assert given | missing == {result.id for result in whole.results}
    assert all(each.fetch.tool == "get_document" for each in small.left_out)
    for result in small.results:
        data = NOTES[result.path].encode()
        shown = result.text_bytes if result.text else (result.byte_start, result.byte_end)
        expected = data[slice(*shown)].decode()
        assert result.text in ("", expected.replace("\r\n", "\n"))


def test_the_explanation_is_data(engine):
    response = engine.ask("tomatoes need water", top_n=1, explain=True)
    explanation = response.explanation
    (query,) = explanation.queries
    assert query.text == "tomatoes need water"
    assert set(query.hits) >= {Strategy.SEMANTIC, Strategy.KEYWORD}
    assert query.weights[Strategy.SEMANTIC] > 0
    assert query.terms == ("tomato", "water")  # need is a stop word
    fallen = {
        fall.id: (count.name, fall.reason) for count in explanation.stages for fall in count.fallen
    }
    twins = {name: reason for name, reason in fallen.values() if name == "identical"}
    assert any("the same text as" in reason for reason in twins.values()) or any(
        name == "ngram" and "wording" in reason for name, reason in fallen.values()
    )
    assert {name for name, _ in fallen.values()} & {"top_n", "cutoff"}
    (result,) = explanation.results
    assert result.id == response.results[0].id
    assert result.evidence[Strategy.KEYWORD].rank >= 1
    assert engine.ask("tomatoes").explanation is None


@pytest.mark.parametrize("fusion", ["score", "rrf"])
@pytest.mark.parametrize("query", ["tokens refreshed", "tomatoes water", "garden session"])
def test_a_score_is_its_contributions_times_its_boosts(engine, query, fusion):
    request = QueryRequest(queries=(query,), top_n=10, explain=True)
    response = engine.answer(request, fusion=fusion, recency_bias=1.0, merge_bonus=0.1)
    for result, why in zip(response.results, response.explanation.results, strict=True):
        expected = sum(why.contributions.values()) * prod(why.boosts.values())
        assert result.score == pytest.approx(min(1.0, expected))


def test_what_was_added_to_a_query_is_explained(engine):
    (query,) = engine.ask("sesion", explain=True).explanation.queries
    (added,) = query.added
    assert (added.word, added.stands_for, added.distance) == ("session", "sesion", 1)


def test_timing_is_told_for_every_stage(engine):
    response = engine.ask("tomatoes")
    assert {count.name for count in response.stages} <= set(response.seconds)
    assert response.seconds["total"] >= response.seconds["retrieval"] > 0


def test_a_hypothesis_is_searched_by_its_meaning(engine):
    request = QueryRequest(hypothesis="Tomatoes need sun and water", top_n=2)
    response = engine.orchestrator.search(request)
    assert response.results[0].path in ("garden.md", "copy.md")
    assert response.results[0].found_by == (Strategy.SEMANTIC,)


def test_a_query_adds_its_words_to_a_hypothesis(engine):
    request = QueryRequest(queries=("logout",), hypothesis="Tomatoes need sun", top_n=10)
    results = engine.answer(request, cutoff_ratio=0.0).results
    (logout,) = (each for each in results if each.heading_path[-1] == "Logout")
    assert Strategy.KEYWORD in logout.found_by
    assert any(each.found_by == (Strategy.SEMANTIC,) for each in results)


def test_a_hypothesis_is_refused_where_that_is_switched_off(engine):
    orchestrator = engine.configured(advanced={"hyde_enabled": False})
    with pytest.raises(QueryError, match="hyde_enabled"):
        orchestrator.search(QueryRequest(hypothesis="an answer"))
    orchestrator.close()


def test_the_state_of_the_index_is_part_of_the_answer(engine):
    state = engine.ask("tomatoes").index
    assert state.state is Readiness.READY
    assert state.complete
    assert state.documents == len(NOTES)
    assert state.vectors_pending == 0


def test_vectors_to_come_are_counted(tmp_path):
    class Lazy(Engine):
        def _embed(self, pending):
            super()._embed(pending[:1])

    with Lazy(tmp_path, NOTES) as engine:
        state = engine.ask("tomatoes").index
        assert state.state is Readiness.BUILDING
        assert not state.complete
        assert state.vectors_pending == state.passages - 1 > 0
        assert engine.ask("tomatoes").results


def test_an_explanation_has_all_that_the_evidence_is_made_of(engine):
    """scripts/fit_calibration.py reads it there."""
    explanation = engine.ask("tomatoes water get_auth_token", explain=True).explanation
    (query,) = explanation.queries
    question = query.question
    assert question.words == len(query.terms)
    assert question.passages > 1
    assert explanation.results
    for result in explanation.results:
        evidence = worth(result.grounds, question.words) + question_evidence(question)
        assert evidence == pytest.approx(result.relevance)
