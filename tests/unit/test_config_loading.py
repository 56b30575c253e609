"""Which file, variable or flag wins, what paths are seen from, and which trees come of it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.config.layers import Assigned, flatten, merge, unflatten
from ragdocs.config.loading import ConfigReading, load_config, read_config
from ragdocs.config.problems import OriginKind, SettingOrigin
from ragdocs.config.resolved import Config, TreeScope, name_tree
from ragdocs.config.values import is_tree_name
from ragdocs.errors import ConfigError
from tests.support.machine import trust_files

FOLDER_FORM = ".mcp-markdown-ragdocs/config.toml"
FILE_FORM = ".ragdocs.toml"


class Place:
    """A home with a project in it, on a disk of its own."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.project = self.home / "project"
        self.below = self.project / "sub" / "deeper"
        self.below.mkdir(parents=True)
        self.environ = {"HOME": str(self.home)}

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def user(self, text: str) -> Path:
        return self.write(self.home / ".config/mcp-markdown-ragdocs/config.toml", text)

    def read(self, cwd: Path | None = None, **more: Any) -> ConfigReading:
        environ = {**self.environ, **more.pop("environ", {})}
        return read_config(cwd=cwd or self.project, environ=environ, **more)

    def load(self, cwd: Path | None = None, **more: Any) -> Config:
        reading = self.read(cwd, **more)
        assert reading.config is not None, [str(one) for one in reading.problems]
        return reading.config


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def test_without_any_file_the_working_directory_is_a_tree_with_its_name(place):
    config = place.load()

    assert config.files == ()
    (tree,) = config.trees
    assert (tree.name, tree.root, tree.scope) == ("project", place.project, TreeScope.LOCAL)
    assert tree.include == ("**/*.md", "**/*.markdown", "**/*.mdx", "**/*.canvas", "**/*.txt")
    assert tree.exclude == ()


@pytest.mark.parametrize("form", [FOLDER_FORM, FILE_FORM])
def test_a_file_is_found_from_any_folder_below(place, form):
    path = place.write(place.project / form, "[search]\nmmr_lambda = 0.1\n")

    config = place.load(place.below)

    assert config.search.mmr_lambda == pytest.approx(0.1)
    assert config.files == (path,)
    assert config.trees[0].root == place.project


def test_the_nearer_file_wins_key_by_key_and_the_users_comes_last(place):
    near = place.write(
        place.project / "sub" / FILE_FORM,
        "[search]\nmmr_lambda = 0.1\n[search.boosts]\ntitle = 9\n",
    )
    far = place.write(
        place.project / FOLDER_FORM,
        "[search]\nmmr_lambda = 0.2\nmin_confidence = 0.2\n[search.boosts]\ntitle = 8\npath = 8\n",
    )
    user = place.user("[search]\nmmr_lambda = 0.3\nmin_confidence = 0.3\nrecency_bias = 0.3\n")

    config = place.load(place.below)

    search = config.search
    assert (search.mmr_lambda, search.min_confidence, search.recency_bias) == pytest.approx(
        (0.1, 0.2, 0.3)
    )
    assert (search.boosts.title, search.boosts.path) == (9, 8)
    assert config.files == (near, far, user)


def test_root_stops_the_climb_but_not_the_users_file(place):
    place.write(place.project / "sub" / FILE_FORM, "root = true\n")
    place.write(place.project / FILE_FORM, "[search]\nmmr_lambda = 0.2\n")
    place.user("[search]\nrecency_bias = 0.3\n")

    search = place.load(place.below).search

    assert (search.mmr_lambda, search.recency_bias) == pytest.approx((0.7, 0.3))


def test_a_named_file_is_read_alone(place):
    place.write(place.project / FILE_FORM, "[search]\nmmr_lambda = 0.2\n")
    place.user("[search]\nrecency_bias = 0.3\n")
    named = place.write(place.home / "other" / "my.toml", "[search]\nmin_confidence = 0.9\n")

    config = place.load(config_file=Path("../other/my.toml"))

    search = config.search
    assert (search.mmr_lambda, search.recency_bias, search.min_confidence) == pytest.approx(
        (0.7, 0.5, 0.9)
    )
    assert [path.resolve() for path in config.files] == [named]
    assert config.trees[0].root == named.parent


def test_two_files_in_one_folder_are_an_error(place):
    place.write(place.project / FOLDER_FORM, "")
    place.write(place.project / FILE_FORM, "")

    (problem,) = place.read().problems

    assert "two configurations" in str(problem)
    assert str(place.project) in str(problem)


def test_xdg_config_home_is_where_the_users_file_is(place):
    place.user("[search]\nmmr_lambda = 0.3\n")
    place.write(place.home / "xdg/mcp-markdown-ragdocs/config.toml", "[search]\nmmr_lambda = 0.4\n")

    config = place.load(environ={"XDG_CONFIG_HOME": str(place.home / "xdg")})

    assert config.search.mmr_lambda == pytest.approx(0.4)


def test_a_relative_xdg_config_home_is_ignored(place):
    place.user("[search]\nmmr_lambda = 0.3\n")

    assert place.load(environ={"XDG_CONFIG_HOME": "xdg"}).search.mmr_lambda == pytest.approx(0.3)


def test_variables_override_files_and_flags_override_variables(place):
    place.write(
        place.project / FILE_FORM,
        "[search]\nmmr_lambda = 0.1\nmin_confidence = 0.1\nrecency_bias = 0.1\n",
    )

    config = place.load(
        environ={"RAGDOCS_SEARCH__MMR_LAMBDA": "0.2", "RAGDOCS_SEARCH__MIN_CONFIDENCE": "0.2"},
        flags={"search": {"mmr_lambda": 0.3}},
    )

    search = config.search
    assert (search.mmr_lambda, search.min_confidence, search.recency_bias) == pytest.approx(
        (0.3, 0.2, 0.1)
    )


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("RAGDOCS_SEARCH__ADVANCED__HYDE_ENABLED", "false", "search.advanced.hyde_enabled", False),
        ("RAGDOCS_SEARCH__BOOSTS__TITLE", "4", "search.boosts.title", 4.0),
        ("RAGDOCS_SEARCH__FUSION", "score", "search.fusion", "score"),
        ("RAGDOCS_SEARCH__FUSION", '"score"', "search.fusion", "score"),
        ("RAGDOCS_EMBEDDING__MODEL", "BAAI/bge-small", "embedding.model", "BAAI/bge-small"),
        ("RAGDOCS_EMBEDDING__MODEL", "2024", "embedding.model", "2024"),
        ("RAGDOCS_EMBEDDING__QUERY_PREFIX", "query: ", "embedding.query_prefix", "query: "),
        ("RAGDOCS_EMBEDDING__QUERY_PREFIX", "", "embedding.query_prefix", ""),
        ("RAGDOCS_EMBEDDING__QUERY_PREFIX", "1\nb = 2", "embedding.query_prefix", "1\nb = 2"),
        ("RAGDOCS_INDEXING__EXCLUDE", '["a/**"]', "indexing.exclude", ("a/**",)),
        ("RAGDOCS_CHUNKING__MAX_CHUNK_CHARS", "900", "chunking.max_leaf_chars", 900),
        ("RAGDOCS_SEARCH__DEDUP_THRESHOLD", "0.9", "search.dedup_similarity_threshold", 0.9),
    ],
)
def test_a_variable_is_a_toml_value_or_a_bare_word(place, variable, text, key, value):
    config = place.load(environ={variable: text})

    found = {one.key: one for one in config.in_force()}[key]
    assert found.value == value
    assert (found.origin.kind, str(found.origin)) == (OriginKind.ENVIRONMENT, variable)


def test_variables_without_two_underscores_are_not_ours(place):
    assert place.load(environ={"RAGDOCS_HOME": "x", "RAGDOCS": "y", "OTHER__KEY": "z"})


@pytest.mark.parametrize("name", ["RAGDOCS_SEARCH_MIN_CONFIDENCE", "RAGDOCS_MIN_CONFIDENCE"])
def test_a_variable_with_one_underscore_too_few_is_pointed_out(place, name):
    (note,) = place.read(environ={name: "0.5"}).notes

    assert "RAGDOCS_SEARCH__MIN_CONFIDENCE" in str(note)


def test_a_tree_by_variable(place):
    (tree,) = place.load(environ={"RAGDOCS_TREE__NOTES__PATH": "notes"}).trees

    assert (tree.name, tree.root) == ("notes", place.project / "notes")


def test_paths_are_seen_from_the_folder_that_a_file_speaks_for(place):
    for form in (FOLDER_FORM, FILE_FORM):
        path = place.write(
            place.project / form,
            '[indexing]\nindex_path = "index"\n[tree.a]\npath = "docs"\n[tree.b]\npath = "~/b"\n'
            '[[context.rules]]\nmatch = "*.py"\ninclude = ["docs/x.md", "a:y.md"]\n'
            '[embedding]\nmodel = "./model"\ncache_folder = "/cache"\n',
        )
        trust_files(place.below, place.environ)
        # `~` is the running user's home, which a test cannot move for expanduser but by HOME.
        config = place.load(place.below)
        path.unlink()

        assert config.index_place.folder == config.indexing.index_path == place.project / "index"
        assert config.trees[0].root == place.project / "docs"
        assert config.trees[1].root == Path("~/b").expanduser().resolve()
        assert config.context.rules[0].include == (str(place.project / "docs/x.md"), "a:y.md")
        assert config.embedding.model == str(place.project / "model")
        assert config.embedding.cache_folder == Path("/cache")


def test_paths_of_the_users_file_are_seen_from_its_folder(place):
    path = place.user('[tree.notes]\npath = "notes"\n')

    assert place.load().trees[0].root == path.parent / "notes"


def test_paths_of_variables_and_flags_are_seen_from_the_working_directory(place):
    place.write(place.project / FILE_FORM, '[indexing]\nindex_path = "index"\n')

    by_variable = place.load(place.below, environ={"RAGDOCS_INDEXING__INDEX_PATH": "v"})
    by_flag = place.load(place.below, flags={"indexing": {"index_path": Path("f")}})

    assert by_variable.index_place.folder == place.below / "v"
    assert by_flag.index_place.folder == place.below / "f"


def test_trees_are_replaced_whole_by_name(place):
    place.write(place.project / FILE_FORM, '[tree.a]\npath = "near"\n')
    place.user('[tree.a]\npath = "far"\nexclude = ["x"]\n[tree.b]\npath = "far"\n')

    a, b = place.load().trees

    assert (a.name, a.root, a.exclude) == ("a", place.project / "near", ())
    assert (a.scope, b.scope) == (TreeScope.LOCAL, TreeScope.GLOBAL)


def test_the_indexing_patterns_serve_every_tree(place):
    place.write(
        place.project / FILE_FORM,
        '[indexing]\ninclude = ["*.md"]\nexclude = ["all"]\n[tree.a]\npath = "a"\n'
        '[tree.b]\npath = "b"\ninclude = ["*.txt"]\nexclude = ["own"]\n',
    )

    a, b = place.load().trees

    assert (a.include, a.exclude) == (("*.md",), ("all",))
    assert (b.include, b.exclude) == (("*.txt",), ("all", "own"))


def test_documents_path_beside_other_trees_is_a_tree_when_it_was_set(place):
    place.user('[tree.notes]\npath = "notes"\n')
    assert [tree.name for tree in place.load().trees] == ["notes"]

    place.write(place.project / FILE_FORM, '[indexing]\ndocuments_path = "manual"\n')

    manual, notes = place.load().trees
    assert (manual.name, manual.root) == ("manual", place.project / "manual")
    assert manual.scope is TreeScope.LOCAL
    assert notes.scope is TreeScope.GLOBAL


def test_a_tree_gets_another_name_than_its_folder_when_that_is_taken(place):
    place.write(
        place.project / FILE_FORM,
        '[indexing]\ndocuments_path = "old/manual"\n[tree.manual]\npath = "manual"\n',
    )

    trees = [(tree.name, str(tree.root.relative_to(place.project))) for tree in place.load().trees]

    assert trees == [("manual", "manual"), ("manual-2", "old/manual")]


def test_a_tree_with_the_same_folder_is_not_doubled(place):
    place.write(
        place.project / FILE_FORM,
        '[indexing]\ndocuments_path = "notes"\n[tree.mine]\npath = "notes"\n',
    )

    assert [tree.name for tree in place.load().trees] == ["mine"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/home/ann/notes", "notes"),
        ("/home/ann/My notes (old)", "My-notes-old"),
        ("/home/ann/заметки", "заметки"),
        ("/home/ann/.config", "config"),
        ("/home/ann/---", "docs"),
        ("/", "docs"),
        ("/x/a\udcffb", "a-b"),
        ("/x/" + "a" * 59 + "-b", "a" * 59),
    ],
)
def test_the_name_of_a_tree_is_its_folders_simplified(folder, name):
    assert name_tree(Path(folder)) == name
    assert is_tree_name(name)


def test_documents_path_of_the_users_file_is_global(place):
    place.user('[indexing]\ndocuments_path = "manual"\n')

    assert place.load().trees[0].scope is TreeScope.GLOBAL


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"tree": {"only": {"path": "only"}}}, [("only", "only")]),
        ({"indexing": {"documents_path": "only"}}, [("only", "only")]),
    ],
)
def test_flags_that_name_documents_mean_exactly_those(place, flags, expected):
    place.write(
        place.project / FILE_FORM,
        '[indexing]\ndocuments_path = "x"\n[tree.a]\npath = "a"\n[tree.docs]\npath = "d"\n',
    )

    trees = place.load(flags=flags).trees

    assert [(tree.name, str(tree.root.relative_to(place.project))) for tree in trees] == expected


def test_every_setting_has_an_origin(place):
    path = place.write(
        place.project / FILE_FORM, '\n[search]\nmmr_lambda = 0.1\n[tree.a]\npath="a"\n'
    )

    config = place.load(flags={"search": {"min_confidence": 0.1}})

    assert str(config.origins["search.mmr_lambda"]) == f"{path}:3"
    assert str(config.origins["tree.a"]) == f"{path}:4"
    assert config.origins["search.min_confidence"].kind is OriginKind.FLAG
    assert str(config.origins["search.recency_bias"]) == "default"
    assert {one.key for one in config.in_force()} == set(config.origins) - {"tree.a"}


def test_an_alias_is_accepted_and_pointed_out(place):
    path = place.write(
        place.project / FILE_FORM, "[search]\n\ndedup_threshold = 0.9\ndedup_enabled = true\n"
    )

    reading = place.read()

    assert reading.config is not None
    assert reading.config.search.dedup_similarity_threshold == pytest.approx(0.9)
    (note,) = reading.notes
    assert str(note) == (
        f"{path}:3: search.dedup_threshold: is accepted as another name for "
        "search.dedup_similarity_threshold"
    )


@pytest.mark.parametrize(
    "text",
    [
        "[search]\ndedup_threshold = 0.9\ndedup_similarity_threshold = 0.9\n",
        "[chunking]\nmin_chunk_chars = 9\nmin_leaf_chars = 9\n",
        "[chunking]\nmax_chunk_chars = 900\nmax_leaf_chars = 900\n",
        "[search]\nparent_retrieval_enabled = true\n[chunking]\nparent_retrieval_enabled = true\n",
    ],
)
def test_both_names_in_one_file_are_an_error(place, text):
    place.write(place.project / FILE_FORM, text)

    (problem,) = place.read().problems

    assert "is another name for" in problem.message


def test_a_name_overrides_an_alias_of_a_further_file(place):
    place.user("[search]\ndedup_threshold = 0.9\n")
    place.write(place.project / FILE_FORM, "[search]\ndedup_similarity_threshold = 0.8\n")

    assert place.load().search.dedup_similarity_threshold == pytest.approx(0.8)


def test_one_file_may_give_the_minimum_and_another_the_maximum(place):
    place.user("[chunking]\nmin_leaf_chars = 2000\n")
    place.write(place.project / FILE_FORM, "[chunking]\nmax_leaf_chars = 3000\n")

    chunking = place.load().chunking

    assert (chunking.min_leaf_chars, chunking.max_leaf_chars) == (2000, 3000)


@pytest.mark.parametrize(("threshold", "is_pointed_out"), [("0.035", True), ("0.4", False)])
def test_a_threshold_from_the_earlier_systems_is_pointed_out(place, threshold, is_pointed_out):
    text = f"[search]\nscore_calibration_threshold = {threshold}\n"
    place.write(place.project / FILE_FORM, text)

    notes = [note.message for note in place.read().notes]

    assert any("on the scale of rank sums" in note for note in notes) is is_pointed_out


def test_advice_on_what_is_probably_not_meant(place):
    place.user('[tree.gone]\npath = "/nonexistent"\n')
    place.write(
        place.project / FILE_FORM,
        '[indexing]\ndocuments_path = "."\n[tree.docs]\npath = "."\n[tree.inner]\npath = "sub"\n'
        '[[context.rules]]\nmatch = "*"\ntrees = ["dcos"]\n',
    )

    notes = [note.message for note in place.read().notes]

    assert any("is not a folder" in note for note in notes)
    assert any("indexed twice" in note for note in notes)
    assert any("has no effect, because [tree.docs] has the same folder" in note for note in notes)
    assert any("there is no tree dcos" in note for note in notes)
    assert len(notes) == 4


def test_the_default_index_is_in_the_cache_and_depends_on_the_trees_alone(place):
    here = place.load(place.project).index_place.folder
    again = place.load(place.project, flags={"search": {"mmr_lambda": 0.1}}).index_place.folder
    other = place.load(place.below).index_place.folder
    moved = place.load(environ={"XDG_CACHE_HOME": "/cache"}).index_place.folder

    assert here == again != other
    assert here.parent == place.home / ".cache/mcp-markdown-ragdocs"
    assert moved == Path("/cache/mcp-markdown-ragdocs") / here.name


def fingerprint(config: Config) -> str:
    return json.dumps(config.fingerprint_settings(), sort_keys=True)


@pytest.mark.parametrize(
    "flags",
    [
        {"chunking": {"max_leaf_chars": 900}},
        {"chunking": {"parent_retrieval_enabled": True}},
        {"search": {"stemmer": "german"}},
        {"embedding": {"model": "other"}},
        {"embedding": {"passage_prefix": "passage: "}},
        {"embedding": {"provider": "huggingface"}},
        {"indexing": {"exclude": ["x"]}},
        {"indexing": {"respect_gitignore": False}},
        {"indexing": {"max_file_bytes": 5}},
        {"tree": {"docs": {"path": "elsewhere"}}},
    ],
)
def test_the_fingerprint_changes_with_what_the_index_is_made_of(place, flags):
    assert fingerprint(place.load(flags=flags)) != fingerprint(place.load())


@pytest.mark.parametrize(
    "flags",
    [
        {"search": {"mmr_lambda": 0.1, "boosts": {"title": 9}}},
        {"embedding": {"threads": 2, "batch_size": 8, "device": "cpu"}},
        {"indexing": {"index_path": "i", "watch": False, "debounce_seconds": 1}},
        {"context": {"terms": 5}},
    ],
)
def test_the_fingerprint_does_not_change_with_the_rest(place, flags):
    assert fingerprint(place.load(flags=flags)) == fingerprint(place.load())


def test_load_config_raises_all_problems_at_once(place):
    place.write(place.project / FILE_FORM, "[search]\nmmr_lambda = 2\nx = 1\n")

    with pytest.raises(ConfigError, match=r"(?s)^2 problems.*mmr_lambda.*search\.x"):
        load_config(cwd=place.project, environ=place.environ)


def test_the_process_is_asked_for_what_is_not_given(place, monkeypatch):
    place.write(place.project / FILE_FORM, "[search]\nmmr_lambda = 0.1\n")
    monkeypatch.chdir(place.below)
    monkeypatch.setenv("HOME", str(place.home))
    monkeypatch.setenv("RAGDOCS_SEARCH__RECENCY_BIAS", "0.9")

    search = load_config().search

    assert (search.mmr_lambda, search.recency_bias) == pytest.approx((0.1, 0.9))


def test_a_working_directory_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        with pytest.raises(ConfigError, match="the working directory"):
            load_config(environ={})
    finally:
        os.chdir(tmp_path)


def test_nothing_is_written(place):
    place.write(place.project / FILE_FORM, "[search]\nmmr_lambda = 0.1\n")
    before = sorted(place.home.rglob("*"))

    place.load(place.below)

    assert sorted(place.home.rglob("*")) == before


# Merging is an algebra: layers over layers, whatever the grouping.

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.one_of(st.tuples(NAMES), st.tuples(st.just("tree"), NAMES), st.tuples(NAMES, NAMES))
LAYERS = st.dictionaries(
    PATHS,
    st.builds(Assigned, st.integers(), st.builds(SettingOrigin, st.sampled_from(OriginKind))),
    max_size=5,
)


@settings(deadline=None)
@given(st.lists(LAYERS, max_size=len(OriginKind)))
def test_the_nearest_layer_that_has_a_key_wins(layers):
    merged = merge(layers)

    for path in {path for layer in layers for path in layer}:
        nearest = next(layer for layer in reversed(layers) if path in layer)
        assert merged[path] == nearest[path]
    assert set(merged) == {path for layer in layers for path in layer}


@settings(deadline=None)
@given(LAYERS, LAYERS, LAYERS)
def test_merging_does_not_depend_on_the_grouping(one, two, three):
    assert merge([merge([one, two]), three]) == merge([one, merge([two, three])])


TABLES = st.fixed_dictionaries(
    {},
    optional={
        "search": st.dictionaries(NAMES, st.integers(), min_size=1),
        "tree": st.dictionaries(
            NAMES, st.dictionaries(NAMES, st.integers(), min_size=1), min_size=1
        ),
        "root": st.booleans(),
    },
)


@settings(deadline=None)
@given(TABLES)
def test_a_table_survives_being_laid_flat(table):
    origin = SettingOrigin(OriginKind.FLAG)
    flat = {path: Assigned(value, origin) for path, value in flatten(table)}

    assert unflatten(flat) == table


def test_documents_on_several_drives_have_no_project_in_common(place, monkeypatch):
    place.write(place.project / FILE_FORM, "[search]\nmmr_lambda = 0.1\n")

    def refuse(paths):
        """As on Windows for `C:` and `D:`."""
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr(os.path, "commonpath", refuse)
    trees = {name: {"path": str(place.project / name)} for name in ("sub", "other")}
    config = place.load(flags={"tree": trees})
    assert {tree.name for tree in config.trees} == {"sub", "other"}
    assert config.files == ()
