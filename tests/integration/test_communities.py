"""Communities are in the index: the command line, Python and every server answer alike, and whoever
indexes keeps them up to date."""

from pathlib import Path

import pytest

from ragdocs import open_index
from ragdocs.app import App
from ragdocs.library.requests import RelatedRequest
from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.indexes import write, write_all
from tests.support.machine import until
from tests.support.mcp_clients import ServerProcess
from tests.support.models import CountingEmbedder
from tests.support.processes import environment, read_json
from tests.support.program import ServedProcess, config_of, served, started

OTTERS = {
    "leader.md": "# Otter\n\nThe otter. See [[member]].\n",
    "member.md": "# Pond\n\nWhere an otter may be found, with frogs and newts. See [[leader]].\n",
    "stranger.md": "# Brook\n\nWhere an otter may be found now and then.\n",
}
RAISED = {"docs:leader.md": 1.1, "docs:member.md": 1.1, "docs:stranger.md": 1.0}


@pytest.fixture
def docs(tmp_path):
    # Younger than two seconds, they would be read again, and that be another generation.
    return write_all(tmp_path / "docs", OTTERS, 1_700_000_000)


def ragdocs(command, *words, docs, index):
    """What the command prints, in a process of its own."""
    options = ("--docs", docs, "--index", index)
    return read_json(command, *words, *options, env=environment(HOME=str(docs.parent)))


def factors(explanation):
    """By how much each document was raised for its community, in order."""
    return {
        one["id"].partition("#")[0]: one["boosts"].get("community", 1.0)
        for one in explanation["results"]
    }


def by_command(docs, index, *more):
    answer = ragdocs("query", "otter", "--explain", *more, docs=docs, index=index)
    return factors(answer["explanation"])


def by_python(docs, index):
    settings = {"indexing": {"index_path": str(index)}}
    with open_index(docs, settings=settings) as opened:
        response = opened.search("otter", explain=True)
        assert response.explanation
        return {
            str(one.id).partition("#")[0]: one.boosts.get("community", 1.0)
            for one in response.explanation.results
        }


def by_server(docs, index):
    options = ("--docs", str(docs), "--index", str(index))
    with ServerProcess("-m", "ragdocs", "mcp", *options, HOME=str(docs.parent)) as process:
        process.initialize()

        def asked():
            told = process.call("query", "query_documents", query="otter", explain=True)
            answer = told["result"]["structuredContent"]
            return answer if answer["index"]["complete"] else None

        return factors(until(asked, 120)["explanation"])


def test_command_python_and_server_give_the_same_answer(docs, index):
    """At once: whoever reads finds what the first one has stored."""
    first = by_command(docs, index)
    assert first == pytest.approx(RAISED), "a command that answers once knows no communities"
    assert by_python(docs, index) == pytest.approx(RAISED)
    assert by_server(docs, index) == pytest.approx(RAISED)
    assert by_command(docs, index, "--no-update") == pytest.approx(RAISED)


@pytest.mark.parametrize(
    ("setting", "factor"),
    [("community_detection_enabled = false", 1.0), ("community_boost_factor = 1.4", 1.4)],
)
def test_the_settings_act_on_what_is_stored(docs, index, setting, factor):
    by_command(docs, index)
    file = write(docs.parent, "other.toml", f"[search.advanced]\n{setting}\n")
    raised = by_command(docs, index, "--no-update", "--config", str(file))
    assert raised["docs:leader.md"] == raised["docs:member.md"] == pytest.approx(factor)
    assert raised["docs:stranger.md"] == pytest.approx(1.0)


def test_what_a_server_computes_every_other_process_reads(apps, docs, index):
    with ServedProcess(docs, index) as server:
        held = until(lambda: server.ask("otter")["complete"] and stored(index))
        assert held == ({"docs:leader.md": 0, "docs:member.md": 0}, True)
        reader = apps(served(docs, index))
        assert related(reader, "leader.md") == ["member.md"]
        write(docs, "stranger.md", OTTERS["stranger.md"] + "See [[leader]] and [[member]].\n")
        until(lambda: related(reader, "leader.md") == ["member.md", "stranger.md"])
        generation, origin = positions(index)
        assert origin < generation
        status = ragdocs("status", docs=docs, index=index)["holdings"]
    assert status["communities"] == 1
    assert status["communities_generation"] == origin
    assert status["communities_current"] is True


def stored(index):
    """Which communities are stored, and whether they are those of the links; None when none are."""
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        found = snapshot.communities_of([one.id for one in snapshot.documents()])
        return (found, snapshot.has_current_communities()) if found else None


def positions(index):
    with Reader.open(index) as reader, reader.snapshot() as snapshot:
        return snapshot.position.generation, snapshot.communities_origin.position.generation


def related(app: App, reference: str) -> list[str]:
    found = app.library.related(RelatedRequest(reference=reference))
    return [one.path for one in found.community]


def updated(docs: Path, index: Path, *, communities: bool, rebuild: bool = False, **sections):
    with (
        App(config_of(docs, index, **sections), CountingEmbedder()) as app,
        app.manager() as manager,
    ):
        manager.update(rebuild=rebuild)
        if communities:
            manager.update_communities(rebuild=rebuild)
        manager.fill()


def test_older_ones_are_used_until_there_are_newer_and_status_tells_of_which_generation(
    apps, docs, index
):
    updated(docs, index, communities=True)
    _, origin = positions(index)
    write(docs, "stranger.md", OTTERS["stranger.md"] + "See [[leader]] and [[member]].\n")
    updated(docs, index, communities=False)
    app = apps(served(docs, index))
    assert related(app, "leader.md") == ["member.md"]
    found = ragdocs("status", docs=docs, index=index)["holdings"]
    assert (found["communities_generation"], found["communities_current"]) == (origin, False)
    updated(docs, index, communities=True)
    assert related(app, "leader.md") == ["member.md", "stranger.md"]


def test_an_edit_that_links_nothing_else_computes_nothing(docs, index):
    updated(docs, index, communities=True)
    before, origin = positions(index)
    write(docs, "member.md", "# Pond\n\nNew words first. See [[leader]].\n")
    updated(docs, index, communities=True)
    generation, still = positions(index)
    assert generation > before
    assert still == origin


def test_a_rebuild_puts_wrong_communities_right(docs, index):
    updated(docs, index, communities=True)
    right = stored(index)
    with App(config_of(docs, index), CountingEmbedder()) as app:
        setup = app.index_setup
        with (
            StoreWriter.open(
                index, setup.fingerprint, settings=setup.settings, indices=setup.tables
            ) as writer,
            writer.transaction() as transaction,
            Reader.open(index) as reader,
            reader.snapshot() as snapshot,
        ):
            later = snapshot.communities_origin
            later = type(later)(snapshot.position, later.edges)
            assert transaction.put_communities({"docs:stranger.md": 0}, later)
    assert stored(index) == ({"docs:stranger.md": 0}, True)
    updated(docs, index, communities=True, rebuild=True)
    assert stored(index) == right


def test_without_the_setting_none_are_computed(apps, docs, index):
    off = {"search": {"advanced": {"community_detection_enabled": False}}}
    updated(docs, index, communities=True, **off)
    assert stored(index) is None
    app = apps(served(docs, index, **off))
    found = app.library.related(RelatedRequest(reference="leader.md"))
    assert found.community_size is None
    assert any("clusters of linked notes" in note for note in found.notes)


def test_documents_without_links_have_no_community_and_need_none(apps, tmp_path, index):
    docs = tmp_path / "plain"
    write(docs, "a.md", "# A\n\nAlone.\n")
    app = started(apps, docs, index)
    until(lambda: app.index_state().complete)
    found = app.library.related(RelatedRequest(reference="a.md"))
    assert (found.community_size, found.notes) == (0, ())
