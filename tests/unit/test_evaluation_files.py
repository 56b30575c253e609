"""A set or a run that cannot be used says so, with the file and the line."""

import re

import pytest

from ragdocs.errors import EvaluationError
from ragdocs.evaluation.labelled_set import read_run, read_set, write_run
from tests.support.indexes import write

QUERIES = '{"id": "a", "text": "apples", "kind": "fruit"}\n{"id": 2, "text": "pears"}\n'
LABELS = "query-id\tpath\tgrade\na\t./one.md\t2\na\tone.md\t1\r\n2\tsub\\two.md\t1\n"


def made(folder, queries=QUERIES, labels=LABELS):
    write(folder, "corpus/one.md", "# One\n")
    write(folder, "queries.jsonl", queries)
    write(folder, "qrels.tsv", labels)
    return folder


def test_a_set_is_read(tmp_path):
    labelled = read_set(made(tmp_path))
    assert [(query.id, query.text) for query in labelled.queries] == [
        ("a", "apples"),
        ("2", "pears"),
    ]
    assert labelled.queries[0].fields["kind"] == "fruit"
    assert labelled.labels == {"a": {"one.md": 2}, "2": {"sub/two.md": 1}}
    assert labelled.corpus == tmp_path.resolve() / "corpus"


@pytest.mark.parametrize(
    ("queries", "labels", "message"),
    [
        ('{"id": "a"\n', LABELS, r"queries\.jsonl:1: the line is not JSON"),
        ("[1]\n", LABELS, r"queries\.jsonl:1: the line must be an object"),
        ("[" * 100_000 + "\n", LABELS, r"queries\.jsonl:1: the line is nested too deep"),
        ('\n{"text": "b"}\n', LABELS, r'queries\.jsonl:2: the line has no "id"'),
        ('{"id": true, "text": "b"}\n', LABELS, r'queries\.jsonl:1: the line has no "id"'),
        ('{"id": "a", "text": " "}\n', LABELS, r'queries\.jsonl:1: the line has no "text"'),
        (QUERIES + '{"id": "2", "text": "x"}\n', LABELS, r"jsonl:3: .*'2' of line 2"),
        ("\n", LABELS, r"queries\.jsonl has no queries"),
        (b"\xff\xfe{", LABELS, r"queries\.jsonl is not UTF-8"),
        (QUERIES, "a\tone.md\n", r"qrels\.tsv:1: the line must have query id, path and grade"),
        (QUERIES, "a\tone.md\tgood\n", r"qrels\.tsv:1: .*'good', which is not a number"),
        (QUERIES, "a\tone.md\tnan\n", r"qrels\.tsv:1: .*'nan', which is not a number"),
        (
            QUERIES,
            "a\tone.md\t1\n\nb\tone.md\t1\n",
            r"qrels\.tsv:3: .*query 'b', which is not in queries",
        ),
        (QUERIES, "a\tone.md\t0\n", r"qrels\.tsv has no label with a grade above 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, queries, labels, message):
    with pytest.raises(EvaluationError, match=message):
        read_set(made(tmp_path, queries, labels))


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path, name):
    (made(tmp_path) / name).unlink()
    with pytest.raises(EvaluationError, match=f"has no file {re.escape(name)}"):
        read_set(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(EvaluationError, match=r"has no folder corpus/"):
        read_set(tmp_path)
    with pytest.raises(EvaluationError, match="is not a folder"):
        read_set(tmp_path / "none")


@pytest.mark.parametrize("name", ["corpus", "queries.jsonl", "qrels.tsv"])
def test_a_link_out_of_the_set_is_not_followed(tmp_path, name):
    """A set that someone gave away had a folder of the user's indexed."""
    folder = made(tmp_path / "set")
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(EvaluationError, match=f"{name} is a link to outside the set"):
        read_set(folder)
    (folder / name).unlink()
    (tmp_path / name).rename(folder / f"inside-{name}")
    (folder / name).symlink_to(f"inside-{name}")
    assert read_set(folder).queries


def test_a_set_may_be_named_by_a_link(tmp_path):
    made(tmp_path / "set")
    (tmp_path / "link").symlink_to("set")
    assert read_set(tmp_path / "link").queries


def test_a_run_survives_its_file(tmp_path):
    run = {"a": ("one.md", "sub/zwei ä.md"), "2": ()}
    write_run(tmp_path / "run.jsonl", run)
    assert read_run(tmp_path / "run.jsonl") == run


def test_a_run_may_name_its_results_by_objects_and_twice(tmp_path):
    write(tmp_path, "run.jsonl", '{"id": 1, "results": [{"path": "./a.md"}, "b.md", "a.md"]}\n')
    assert read_run(tmp_path / "run.jsonl") == {"1": ("a.md", "b.md")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1}\n', r'run\.jsonl:1: the line has no "results"'),
        ('{"id": 1, "results": [3]}\n', r"run\.jsonl:1: .*not a path"),
        ('{"id": 1, "results": []}\n{"id": "1", "results": []}\n', r"run\.jsonl:2: .*second time"),
    ],
)
def test_what_is_wrong_with_a_run_is_said_with_its_line(tmp_path, text, message):
    write(tmp_path, "run.jsonl", text)
    with pytest.raises(EvaluationError, match=message):
        read_run(tmp_path / "run.jsonl")


def test_a_run_that_cannot_be_written_says_where(tmp_path):
    with pytest.raises(EvaluationError, match=r"none/run\.jsonl cannot be written"):
        write_run(tmp_path / "none" / "run.jsonl", {})
