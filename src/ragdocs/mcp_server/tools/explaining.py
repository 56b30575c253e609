"""Why the answer is what it is, cut down to what a reader takes in: as data and as lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragdocs.mcp_server.tools.quoting import one_line
from ragdocs.search.candidates import Strategy
from ragdocs.search.explanation import Explanation, QueryExplanation, ResultExplanation
from ragdocs.search.stages import StageCount

MAX_TERMS = 20
MAX_FALLEN = 3
MAX_QUERY_CHARS = 120
MAX_RESULTS = 10


def explanation_of(explanation: Explanation) -> dict[str, Any]:
    return {
        "confidence_from": explanation.confidence_from,
        "queries": [_query(each) for each in explanation.queries],
        "results": [_result(each) for each in explanation.results[:MAX_RESULTS]],
        "stages": [_stage(each) for each in explanation.stages],
    }


def explanation_lines(explanation: Mapping[str, Any]) -> Iterator[str]:
    yield "Why:"
    for query in explanation["queries"]:
        read = "strict" if query["is_strict"] else "plain"
        kind = f"{query['query_type']}; {read}, because {query['why']}"
        yield f"- query {one_line(query['text'])!r} ({kind}): {_pairs(query['hits'])} hits"
        for wish in query["wishes"]:
            found = f"in {wish['passages']} passages, brought forward by {wish['strength']}"
            yield f"  wished for: {one_line(wish['phrase'])!r}, {found}"
        if query["as_text"]:
            yield f"  read as text: {one_line(' '.join(query['as_text']))}"
        added = ", ".join(each["word"] for each in query["added"]) or "none"
        yield f"  terms {', '.join(query['terms'])}; added {added}"
        if query["left_out"]:
            yield f"  not looked for, because common: {', '.join(query['left_out'])}"
    yield f"- confidence is made from the {explanation['confidence_from']}"
    for number, result in enumerate(explanation["results"], start=1):
        found = "; ".join(
            f"{name} rank {each['rank']}, score {each['score']}, "
            f"gave {result['contributions'].get(name, 0.0)}"
            for name, each in result["evidence"].items()
        )
        raised = _pairs(result["boosts"])
        yield f"- [{number}] {found}{f'; raised by {raised}' if raised else ''}"
    for stage in explanation["stages"]:
        yield f"- stage {stage['name']}: {stage['before']} in, {stage['after']} out"
        for fallen in stage["fallen"]:
            yield f"    {one_line(fallen['id'])}: {one_line(fallen['reason'])}"


def _query(query: QueryExplanation) -> dict[str, Any]:
    return {
        "text": query.text[:MAX_QUERY_CHARS],
        "query_type": query.query_type.value,
        "is_strict": query.is_strict,
        "why": query.why,
        "wishes": [
            {
                "phrase": each.phrase[:MAX_QUERY_CHARS],
                "passages": each.passages,
                "strength": round(each.strength, 3),
            }
            for each in query.wishes
        ],
        "as_text": list(query.as_text[:MAX_TERMS]),
        "terms": list(query.terms[:MAX_TERMS]),
        "left_out": list(query.left_out[:MAX_TERMS]),
        "added": [
            {"word": each.word, "weight": round(each.weight, 3)} for each in query.added[:MAX_TERMS]
        ],
        "weights": _rounded(query.weights),
        "hits": {strategy.value: count for strategy, count in query.hits.items()},
        "candidates": query.candidates,
    }


def _result(result: ResultExplanation) -> dict[str, Any]:
    evidence = {
        strategy.value: {
            "rank": each.rank,
            "score": round(each.score, 4),
        }
        for strategy, each in result.evidence.items()
    }
    return {
        "id": result.id,
        "relevance": round(result.relevance, 4),
        "evidence": evidence,
        "contributions": _rounded(result.contributions, 4),
        "boosts": {name: round(value, 3) for name, value in result.boosts.items()},
    }


def _stage(stage: StageCount) -> dict[str, Any]:
    fallen: Sequence[dict[str, Any]] = [
        {"id": each.id, "reason": each.reason} for each in stage.fallen[:MAX_FALLEN]
    ]
    return {
        "name": str(stage.name),
        "before": stage.before,
        "after": stage.after,
        "fallen": fallen,
    }


def _rounded(weights: Mapping[Strategy, float], digits: int = 3) -> dict[str, float]:
    return {strategy.value: round(value, digits) for strategy, value in weights.items()}


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
