"""What tools take: the schemas, and what is said to a call that does not keep to them."""

import json
import time

import pytest

from ragdocs.mcp_server.answer import BadArguments
from ragdocs.mcp_server.library_tools import DocumentArguments, ListArguments, RelatedArguments
from ragdocs.mcp_server.search_tool import QueryArguments
from ragdocs.mcp_server.tools import TOOLS

LISTED = {name: tool.to_tool().model_dump(by_alias=True) for name, tool in TOOLS.items()}
WITHOUT_DEFAULT = {
    "min_score",
    "query_type",
    "uniqueness",
    "similarity_threshold",
    "start_line",
    "end_line",
}
"""As configured, recognised, or simply not given."""
PARAMETERS = [
    (name, parameter, schema)
    for name, tool in LISTED.items()
    for parameter, schema in tool["inputSchema"]["properties"].items()
]


def test_the_six_tools_in_their_order():
    assert list(TOOLS) == [
        "query_documents",
        "search_with_hypothesis",
        "get_document",
        "list_documents",
        "find_related",
        "index_status",
    ]


def test_all_that_a_model_reads_of_them_is_under_8000_bytes():
    read = [
        {key: tool[key] for key in ("name", "description", "inputSchema")}
        for tool in LISTED.values()
    ]
    assert len(json.dumps(read, separators=(",", ":")).encode()) < 8_000


def is_bounded(schema):
    if "anyOf" in schema:
        return all(map(is_bounded, schema["anyOf"]))
    match schema["type"]:
        case "string":
            return "enum" in schema or "maxLength" in schema
        case "integer" | "number":
            return "minimum" in schema and "maximum" in schema
        case "array":
            return "maxItems" in schema and is_bounded(schema["items"])
        case "object":
            return all(map(is_bounded, schema["properties"].values()))
        case kind:
            return kind == "boolean"


def is_empty_by_itself(schema):
    """Without a default, a text is empty and a list has nothing."""
    return schema.get("type") in ("string", "array") and "enum" not in schema


@pytest.mark.parametrize(("tool", "parameter", "schema"), PARAMETERS)
def test_every_parameter_has_a_type_a_range_and_a_description(tool, parameter, schema):
    assert is_bounded(schema)
    assert schema["description"]
    is_required = parameter in LISTED[tool]["inputSchema"].get("required", ())
    if not is_required and not is_empty_by_itself(schema):
        assert "default" in schema or parameter in WITHOUT_DEFAULT
        assert "default" in schema or "efault: " in schema["description"]
    for part in schema.get("items", {}).get("properties", {}).values():
        assert part["description"]


@pytest.mark.parametrize("tool", LISTED.values(), ids=lambda tool: tool["name"])
def test_a_tool_describes_itself_and_what_it_gives(tool):
    assert tool["inputSchema"]["additionalProperties"] is False
    assert tool["outputSchema"]["type"] == "object"
    assert "E.g. {" in tool["description"]
    assert "$ref" not in json.dumps(tool["inputSchema"])
    assert tool["annotations"] == {
        "title": None,
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_the_example_in_a_description_is_a_call_that_is_taken(tool):
    _, *examples = tool.description.split("{")
    text = tool.description[tool.description.index("E.g. ") + 5 :]
    assert examples
    for example in text.split(" or "):
        tool.arguments.read(json.loads(example))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "query is missing: it must be a text of 0 to 2,000 characters or a list of at most"),
        ({"query": 7}, "query is 7: it must be a text"),
        ({"query": []}, "query is []: it must be"),
        ({"query": "a", "top_n": 0}, "top_n is 0: it must be a whole number from 1 to 50"),
        ({"query": "a", "top_n": 10**30}, "from 1 to 50"),
        ({"query": "a", "top_n": 1.5}, "top_n is 1.5: it must be a whole number"),
        ({"query": "a", "top_n": True}, "top_n is true: it must be a whole number"),
        ({"query": "a", "top_n": "abc"}, 'top_n is "abc": it must be a whole number'),
        ({"query": "a", "min_score": 2}, "min_score is 2: it must be a number from 0 to 1"),
        ({"query": "a", "topn": 5}, 'no parameter "topn", did you mean top_n?'),
        ({"query": "a", "zzz": 5}, 'no parameter "zzz", the parameters are: query, '),
        ({"query": "a", "uniqueness": "x"}, 'uniqueness is "x": it must be one of off, document'),
        ({"query": "a", "explain": "yes"}, 'explain is "yes": it must be true or false'),
        ({"query": "a", "tags": [1]}, "tags is [1]: it must be a list of at most 50, each a text"),
        ({"query": "x" * 3000}, "… (3,000 characters): it must be a text of 0 to 2,000"),
        ({"query": "a", "max_tokens": 10_001}, "from 300 to 10,000"),
    ],
)
def test_a_call_that_does_not_keep_to_the_schema_is_told_what_to_change(arguments, said):
    with pytest.raises(BadArguments) as caught:
        QueryArguments.read(arguments)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 800


def test_several_mistakes_are_told_at_once():
    with pytest.raises(BadArguments, match=r"top_n is 0.*min_score is 2.*\"zzz\""):
        QueryArguments.read({"query": "a", "top_n": 0, "min_score": 2, "zzz": 1})


def test_a_huge_call_is_refused_in_few_words_and_at_once():
    huge = {"query": "x" * 5_000_000, "tags": [["y" * 1_000] * 1_000] * 10}
    unknown = {f"{'z' * 500}{number}": number for number in range(2_000)}
    began = time.process_time()
    with pytest.raises(BadArguments) as caught:
        QueryArguments.read(huge | unknown)
    assert time.process_time() - began < 5
    assert len(str(caught.value)) < 2_500


def test_null_means_not_given_and_one_value_a_list_of_one():
    read = QueryArguments.read({"query": "a", "top_n": None, "tags": "x", "min_score": None})
    assert (read.top_n, read.tags, read.min_score) == (5, ("x",), None)
    assert RelatedArguments.read({"files": {"path": "a.py"}}).files[0].path == "a.py"


@pytest.mark.parametrize("name", ["modified_after", "modified_before"])
def test_a_date_that_is_none_is_refused(name):
    with pytest.raises(BadArguments, match=f"{name} is not a date: write 2026-01-31"):
        QueryArguments.read({"query": "a", name: "yesterday"}).to_request()


def test_a_day_as_an_end_is_all_of_it():
    read = QueryArguments.read(
        {"query": "a", "modified_after": "2026-01-31", "modified_before": "2026-01-31"}
    )
    filters = read.to_request().filters
    assert filters.modified_after.isoformat() == "2026-01-31T00:00:00+00:00"
    assert filters.modified_before.isoformat() == "2026-01-31T23:59:59.999999+00:00"


def test_an_address_names_a_document_a_section_or_lines():
    def request(document):
        return DocumentArguments.read({"document": document}).to_request(5_000)

    assert request("ragdocs://doc/docs/a%20b.md").reference == "docs:a b.md"
    assert request("ragdocs://doc/docs/a.md#set-up").reference == "docs:a.md#set-up"
    lines = request("ragdocs://doc/docs/a.md#L3-L9")
    assert (lines.reference, lines.start_line, lines.end_line) == ("docs:a.md", 3, 9)
    with pytest.raises(BadArguments, match="list_documents"):
        request("ragdocs://tag/x")


def test_either_a_document_or_source_files():
    for given in ({}, {"document": "a.md", "files": [{"path": "a.py"}]}):
        with pytest.raises(BadArguments, match="give either document, or files and diff"):
            _ = RelatedArguments.read(given).is_about_sources


def test_the_schema_and_the_library_have_the_same_limits():
    """The schema took 50 tags and the library 20; the library took longer names and references."""
    tags = [f"tag-{number}" for number in range(50)]
    long = "x" * 1_000
    arguments = ListArguments.read({"tags": tags, "tree": long, "path": "y" * 13_000})
    assert arguments.to_request(300).tags == tuple(tags)
    assert DocumentArguments.read({"document": "z" * 13_000}).to_request(300).reference
    for kind, values in (
        (ListArguments, {"tags": [*tags, "one more"]}),
        (ListArguments, {"tree": f"{long}x"}),
        (DocumentArguments, {"document": "z" * 13_001}),
    ):
        with pytest.raises(BadArguments):
            kind.read(values)
