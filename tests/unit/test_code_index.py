"""The code index, by what it finds."""

import time

import pytest

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import code_analyzer, text_analyzer
from ragdocs.indices.code import CodeEngine, CodeIndex
from ragdocs.indices.scopes import scope_of
from ragdocs.models import DocId
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.stores import indexed

DOCUMENTS = {
    "users.md": "# Users\n\n"
    + "Intro text about users. " * 30
    + "\n\n## Reading\n\n"
    + "Words. " * 60
    + "\n\n```python\ndef getUserById(id):\n    return 1\n```\n",
    "snake.md": "# Snake\n\n```python\ndef get_user_by_id(id): ...\n```\n",
    "tokens.md": "# Tokens\n\n```js\nfunction getAuthToken() { return parse(x) }\n```\n",
    "rust.md": "# Rust\n\n```rust\nlet v: std::vec::Vec<u8> = parse_json_data(&s);\n```\n",
    "cpp.md": "# C++\n\n```cpp\nstd::vector<HTTPResponseError> errors; // C++ only\n```\n",
}


class Code:
    def __init__(self, folder):
        self.folder = folder
        self.update(DOCUMENTS)

    def update(self, texts, removed=()):
        tables = CodeIndex(code_analyzer())
        writer = StoreWriter.open(self.folder, "t", indices=[tables])
        with writer, writer.transaction() as transaction:
            for path, text in texts.items():
                transaction.put(indexed(path, text), time.time_ns())
            for path in removed:
                transaction.remove(DocId(f"docs:{path}"))

    def ask(self, text, **more):
        engine = CodeEngine(code_analyzer(), text_analyzer(Stemmer("english")))
        with Reader.open(self.folder) as reader, reader.snapshot() as snapshot:
            hits = engine.search(snapshot, text, 10, **more).hits
            chunks = snapshot.chunks_by_key([hit.key for hit in hits])
            return [chunks[hit.key].chunk.id.removeprefix("docs:") for hit in hits]


@pytest.fixture
def code(tmp_path):
    return Code(tmp_path)


def test_camelcase_tokenization(code):
    assert code.ask("getUserById")[0] == "users.md#reading"
    assert "snake.md#snake" in code.ask("getUserById")


def test_snake_case_tokenization(code):
    assert code.ask("parse_json_data")[0] == "rust.md#rust"
    assert code.ask("json") == ["rust.md#rust"]


def test_preserve_punctuation(code):
    assert code.ask("std::vector")[0] == "cpp.md#c"
    assert code.ask("C++") == ["cpp.md#c"]


def test_search_function_name(code):
    assert code.ask("getAuthToken")[0] == "tokens.md#tokens"


def test_search_class_name(code):
    assert code.ask("HTTPResponseError") == ["cpp.md#c"]
    assert code.ask("response") == ["cpp.md#c"]


def test_language_filter(code):
    assert code.ask("parse", language="js") == ["tokens.md#tokens"]
    assert code.ask("parse", language="Rust") == ["rust.md#rust"]
    assert code.ask("parse", language="cobol") == []


def test_persist_and_load(code):
    before = code.ask("parse")
    code.update({})
    assert code.ask("parse") == before != []


def test_a_hit_leads_to_the_chunk_that_holds_the_block(code):
    assert code.ask("getUserById")[0] == "users.md#reading"


def test_an_edit_and_a_delete_are_seen(code):
    code.update({"tokens.md": "# Tokens\n\nNo code now.\n"}, removed=("rust.md",))
    assert code.ask("parse") == []


def test_a_scope_restricts_the_search(code):
    assert code.ask("user", scope=frozenset({DocId("docs:snake.md")})) == ["snake.md#snake"]


def test_a_scope_that_leaves_out_few_finds_what_is_left(code):
    found, left_out = code.ask("user"), frozenset({DocId("docs:snake.md")})
    every = frozenset(DocId(f"docs:{path}") for path in DOCUMENTS)
    kept = code.ask("user", scope=scope_of(every - left_out, left_out))
    assert kept == [chunk for chunk in found if chunk != "snake.md#snake"] != found


def test_the_words_of_a_question_do_not_count(code):
    assert code.ask("what is the of and") == []
    assert code.ask("how is the getAuthToken used")[0] == "tokens.md#tokens"
