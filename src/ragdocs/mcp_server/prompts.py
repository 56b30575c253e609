"""Prompts for the three usual jobs: the user picks one in the client, often as a slash command."""

from collections.abc import Mapping
from dataclasses import dataclass

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    GetPromptResult,
    ListPromptsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from ragdocs.limits import MAX_QUERY_CHARS, MAX_REFERENCE_CHARS


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptKind:
    """One prompt; `text` has a place for its argument, if it takes one."""

    name: str
    title: str
    description: str
    text: str
    argument: str = ""
    meaning: str = ""
    most: int = 0


_ALL = (
    PromptKind(
        name="answer",
        title="Answer with citations",
        description="Answers a question from the documents; every statement has its source.",
        argument="question",
        meaning="What you want to know.",
        most=MAX_QUERY_CHARS,
        text=(
            "Answer this question from my documents: {}\n\n"
            "1. Call query_documents with the question. If nothing is certain, try other words, or "
            "search_with_hypothesis.\n"
            "2. Read on with get_document where a passage is cut or only its place is given.\n"
            "3. Answer from what you read, nothing else. Cite each statement as `path:first-last`. "
            "If the documents do not answer the question, say so, and name what comes nearest.\n"
            "4. If the index is incomplete, say that too."
        ),
    ),
    PromptKind(
        name="related",
        title="Find what is related to this file",
        description="Documents that are linked or similar to a document, or that explain a source "
        "file.",
        argument="file",
        meaning="A document, or a source file you work on.",
        most=MAX_REFERENCE_CHARS,
        text=(
            "Find what in my documents is related to {}\n\n"
            '1. Call find_related: with "document" if it is one of the documents, else with '
            '"files" and its path and content.\n'
            "2. Read the most promising ones with get_document.\n"
            "3. List at most ten, most useful first: `path:line`, and one sentence on how each is "
            "related. Name what is missing a link."
        ),
    ),
    PromptKind(
        name="check",
        title="Check the knowledge base",
        description="Broken links, orphans, near-copies and other problems, with what to do.",
        text=(
            "Check my documents.\n\n"
            '1. Call index_status with {"lint": ["all"]}.\n'
            "2. Group the problems by what to do about them, worst first. Give each its "
            "`path:line` and the exact change you propose; read the place with get_document when "
            "the message is not enough.\n"
            "3. Say which files could not be indexed, and why. Change nothing before I agree."
        ),
    ),
)
PROMPTS: Mapping[str, PromptKind] = {prompt.name: prompt for prompt in _ALL}


def list_prompts() -> ListPromptsResult:
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=kind.name,
                title=kind.title,
                description=kind.description,
                arguments=[
                    PromptArgument(name=kind.argument, description=kind.meaning, required=True)
                ]
                if kind.argument
                else [],
            )
            for kind in PROMPTS.values()
        ]
    )


def get_prompt(name: str, given: Mapping[str, str]) -> GetPromptResult:
    kind = PROMPTS.get(name)
    if kind is None:
        raise _refuse(f"there is no such prompt; the prompts are: {', '.join(PROMPTS)}")
    unknown = [each for each in given if each != kind.argument]
    if unknown:
        takes = f"takes only {kind.argument}" if kind.argument else "takes no argument"
        raise _refuse(f"the prompt {name} {takes}")
    text = kind.text
    if kind.argument:
        value = given.get(kind.argument, "").strip()
        if not value:
            raise _refuse(f"{kind.argument} is missing: {kind.meaning}")
        if len(value) > kind.most:
            raise _refuse(f"{kind.argument} is longer than {kind.most:,} characters")
        text = text.replace("{}", value, 1)
    message = PromptMessage(role="user", content=TextContent(text=text))
    return GetPromptResult(description=kind.description, messages=[message])


def _refuse(said: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=said)
