"""What tools take: the schemas, and what is said to a call that does not keep to them."""

import json
import time

import pytest
from mcp.types import ListToolsResult

from ragdocs.mcp_server.answer import BadArguments, parameters_of
from ragdocs.mcp_server.library_tools import DocumentArguments, ListArguments, RelatedArguments
from ragdocs.mcp_server.search_tool import HypothesisArguments, QueryArguments
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
    for name, tool in TOOLS.items()
    for parameter, schema in parameters_of(tool.arguments).items()
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


def test_all_that_a_client_is_sent_of_them_is_under_16000_bytes():
    listed = ListToolsResult(tools=[tool.to_tool() for tool in TOOLS.values()])
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True).encode()) < 16_000


def test_the_schema_of_an_answer_names_its_fields_and_those_of_its_entries():
    schema = LISTED["query_documents"]["outputSchema"]
    assert {"results", "index", "explanation"} <= set(schema["properties"])
    assert {"results", "index"} <= set(schema["required"])
    entry = schema["properties"]["results"]["items"]["properties"]
    assert entry["path"] == {"type": "string"}
    assert entry["confidence"] == {"type": "number"}
    assert "description" not in json.dumps(schema)


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
    schema = tool["inputSchema"]
    assert schema.get("additionalProperties", "options" in schema["properties"]) in (False, True)
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


def test_a_search_shows_a_model_few_parameters_and_lists_the_others_as_options():
    shown = LISTED["query_documents"]["inputSchema"]["properties"]
    assert set(shown) <= {
        *("query", "top_n", "filter", "path", "min_score", "max_tokens", "explain", "options"),
    }
    assert {*shown, *shown["options"]["properties"]} == {*QueryArguments.model_fields, "options"}
    assert LISTED["search_with_hypothesis"]["inputSchema"]["properties"]["options"] == {
        "type": "object",
        "description": "As in query_documents.",
    }


EVERY = {
    "top_n": 7,
    "min_score": 0.3,
    "path": "guide",
    "tree": "docs",
    "tags": ["a", "b"],
    "category": "how-to",
    "author": "Ines",
    "language": "python",
    "modified_after": "2026-01-31",
    "modified_before": "2026-02-01",
    "excluded_files": ["old"],
    "max_tokens": 900,
    "explain": True,
    "show_stats": True,
    "show_metadata": True,
}
OF_A_QUERY = {
    "strict": True,
    "query_type": "factual",
    "uniqueness": "document",
    "similarity_threshold": 0.8,
}
"""Every parameter of the first releases; programs and the seeds' documents use these names."""


@pytest.mark.parametrize(
    ("kind", "given", "name", "value"),
    [
        (kind, given, name, value)
        for kind, given, every in (
            (QueryArguments, {"query": "a"}, EVERY | OF_A_QUERY),
            (HypothesisArguments, {"hypothesis": "b"}, EVERY),
        )
        for name, value in every.items()
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_parameter_is_taken_at_the_top_and_among_the_options(kind, given, name, value):
    at_the_top = kind.read({**given, name: value})
    assert at_the_top == kind.read({**given, "options": {name: value}})
    assert at_the_top == kind.read({**given, "options": json.dumps({name: value})})
    assert at_the_top == kind.read({**given, name: value, "options": {name: value}})
    assert at_the_top != kind.read(given)
    found = getattr(at_the_top, name)
    assert (list(found) if isinstance(found, tuple) else found) == value


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"zzz": 1}, 'there is no parameter "zzz", the parameters are: '),
        ({"tre": "x"}, "did you mean tree?"),
        ({"top_n": 0}, "top_n is 0: it must be a whole number from 1 to 50"),
        ({"top_n": 3}, "top_n is given twice: leave it out of options"),
        ({"options": {}}, 'there is no parameter "options"'),
        (7, 'options is 7: it must be an object, {"name": value}'),
        ("tree", 'options is "tree": it must be an object'),
        ([{"tree": "x"}], "it must be an object"),
    ],
)
def test_wrong_options_are_told_as_other_parameters_are(options, said):
    given = {"query": "a", "options": options} | ({"top_n": 5} if options == {"top_n": 3} else {})
    with pytest.raises(BadArguments) as caught:
        QueryArguments.read(given)
    assert said in str(caught.value)


@pytest.mark.parametrize("nothing", [None, {}, "{}", {"tree": None}])
def test_options_may_be_empty(nothing):
    assert QueryArguments.read({"query": "a", "options": nothing}).tree == ""


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("top_n", "5", 5),
        ("top_n", " 7 ", 7),
        ("top_n", 5.0, 5),
        ("top_n", "5.0", 5),
        ("min_score", "0.3", 0.3),
        ("min_score", 1, 1.0),
        ("min_score", "1", 1.0),
        ("explain", "true", True),
        ("explain", "False", False),
        ("tags", "x", ("x",)),
        ("tags", '["x", "y"]', ("x", "y")),
        ("tags", "[x", ("[x",)),
        ("top_n", None, 5),
        ("uniqueness", None, None),
    ],
)
def test_a_value_that_plainly_stands_for_another_type_is_taken(name, given, taken):
    read = getattr(QueryArguments.read({"query": "a", name: given}), name)
    assert (read, type(read)) == (
        pytest.approx(taken) if isinstance(taken, float) else taken,
        type(taken),
    )


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("top_n", "5 or 6"),
        ("top_n", "1.5"),
        ("top_n", "nan"),
        ("top_n", "9" * 5_000),
        ("min_score", "inf"),
        ("min_score", ""),
        ("explain", "yes"),
        ("explain", 1),
    ],
)
def test_a_value_that_does_not_is_refused(name, given):
    with pytest.raises(BadArguments, match=f"^{name} is "):
        QueryArguments.read({"query": "a", name: given})


@pytest.mark.parametrize("name", ["modified_after", "modified_before"])
def test_an_invalid_date_is_refused(name):
    with pytest.raises(BadArguments, match=f"{name} is not a date: write 2026-01-31"):
        QueryArguments.read({"query": "a", name: "some day"}).to_request()


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
