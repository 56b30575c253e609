"""The two searches: from checked arguments to an answer that fits."""

from dataclasses import replace
from typing import Any, cast

from ragdocs.mcp_server.backend import Backend
from ragdocs.mcp_server.tools.answering import Given, as_json, fitted, plain
from ragdocs.mcp_server.tools.explaining import explanation_of
from ragdocs.mcp_server.tools.search_answers import SearchAnswer, links_to, search_answer
from ragdocs.mcp_server.tools.search_arguments import HypothesisArguments, QueryArguments
from ragdocs.mcp_server.tools.search_text import search_text
from ragdocs.search.budget import tokens
from ragdocs.search.responses import SearchResponse


def search(backend: Backend, arguments: QueryArguments | HypothesisArguments) -> Given:
    """By a question, or by a hypothetical answer."""
    request, limit = arguments.to_request(), arguments.max_tokens
    found: SearchResponse | None = None

    def ask(room: int) -> Given:
        nonlocal found
        if found is None or found.within is None:
            response = found = backend.search(replace(request, max_tokens=room))
        else:
            shown = found.within(room)
            response = replace(found, results=shown.results, left_out=shown.left_out)
        has_stats = arguments.show_stats
        answer = search_answer(response, backend.activity(), limit, has_stats=has_stats)
        return _given(_explained(answer, response, limit), response)

    given = fitted(limit, ask)
    if given.tokens <= limit or found is None:
        return given
    return _least(found, limit)


def _least(found: SearchResponse, limit: int) -> Given:
    """Citations alone are too much: that of the best, or not even that."""
    response = replace(found, explanation=None)
    if found.within is not None:
        shown = found.within(1)
        response = replace(response, results=shown.results, left_out=shown.left_out)
    notes = ("max_tokens is too little for all of it: raise it.",)
    answer = search_answer(response, "", limit, has_stats=False)
    best = replace(answer, results=answer.results[:1], left_out=(), notes=notes)
    given = _given(best, response)
    return given if given.tokens <= limit else _given(replace(best, results=()), response)


def _given(answer: SearchAnswer, response: SearchResponse) -> Given:
    """With links to the results that are in it, which are the first."""
    links = links_to(response.results[: len(answer.results)])
    return Given(plain(answer), search_text(answer), links)


def _explained(answer: SearchAnswer, response: SearchResponse, limit: int) -> SearchAnswer:
    """With why it is so; that takes at most half of the room."""
    if response.explanation is None:
        return answer
    shown = {result.matched.id for result in response.results}
    results = tuple(each for each in response.explanation.results if each.matched_id in shown)
    explanation = explanation_of(replace(response.explanation, results=results))
    explained = replace(answer, explanation=explanation)
    # Texts are cleaned here already: they become lines too.
    cleaned = cast(dict[str, Any], plain(explained)["explanation"])
    if 2 * tokens(as_json(cleaned)) <= limit:
        return replace(answer, explanation=cleaned)
    notes = (*answer.notes, "The explanation is too long for max_tokens: raise it.")
    return replace(answer, notes=notes)
