"""Why an answer is what it is, as tables: each query, each result, each stage."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragdocs.cli.output import shown_lines
from ragdocs.search.candidates import Strategy
from ragdocs.search.explanation import Explanation, QueryExplanation, ResultExplanation

_MAX_FALLEN = 5


def tables(explanation: Explanation) -> None:
    """On stdout, beside the answer they explain."""
    console = Console(highlight=False, soft_wrap=False)
    for query in explanation.queries:
        console.print(_query(query))
    if explanation.results:
        made_from = f"confidence is made from the {explanation.confidence_from}"
        console.print(_results(explanation.results, made_from))
    console.print(_stages(explanation))


def _query(query: QueryExplanation) -> Table:
    table = Table("index", "weight", "hits", title=_plain(f"query: {query.text or '(hypothesis)'}"))
    for strategy, hits in query.hits.items():
        table.add_row(strategy.value, f"{query.weights.get(strategy, 0):.2f}", str(hits))
    read = f"{'strict' if query.is_strict else 'plain words'}, because {query.why}"
    said = [f"{query.query_type.value}; {read}"]
    said += [f"wished for: {one.in_words()}" for one in query.wishes]
    if query.as_text:
        said.append(f"read as text: {' '.join(query.as_text)}")
    said.append(f"looked for: {', '.join(query.terms) or 'nothing'}")
    if query.added:
        said.append("added: " + ", ".join(f"{one.word} ({one.weight:.2f})" for one in query.added))
    said.append(f"{query.candidates} candidates went into the stages")
    words, rarity, spread, passages = query.question
    said.append(
        f"confidence counts {words} words of rarity {rarity:.2f} "
        f"(cosines differ by {spread:.3f}, {passages:,} passages)"
    )
    table.caption = _plain("\n".join([*said, *query.notes]))
    return table


def _results(results: tuple[ResultExplanation, ...], made_from: str) -> Table:
    table = Table("#", "chunk", *(one.value for one in Strategy), "boosts", "evidence")
    table.title = "results: rank (score) in each index"
    table.caption = made_from
    for number, result in enumerate(results, 1):
        found = (result.evidence.get(strategy) for strategy in Strategy)
        cells = [f"{one.rank} ({one.score:.3f})" if one else "" for one in found]
        boosts = ", ".join(f"{name} by {by:.2f}" for name, by in result.boosts.items())
        row = [str(number), _plain(result.id), *cells, boosts, f"{result.relevance:.3f}"]
        table.add_row(*row)
    return table


def _stages(explanation: Explanation) -> Table:
    table = Table("stage", "in", "out", "what fell, and why", title="stages")
    for stage in explanation.stages:
        reasons = [f"{one.id}: {one.reason}" for one in stage.fallen[:_MAX_FALLEN]]
        if len(stage.fallen) > _MAX_FALLEN:
            reasons.append(f"and {len(stage.fallen) - _MAX_FALLEN} more")
        table.add_row(stage.name, str(stage.before), str(stage.after), _plain("\n".join(reasons)))
    return table


def _plain(text: str) -> Text:
    """Never markup: a document may not speak to the terminal."""
    return Text(shown_lines(text))
