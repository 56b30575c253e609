"""The store between real processes: commits are seen, and a killed writer leaves no trace."""

import random
import signal

import pytest

from ragdocs.store.reader import Reader
from ragdocs.store.writer import StoreWriter
from tests.support.processes import ask, read_line
from tests.support.stores import FINGERPRINT, READ_NS, Section, file, put, store_process, wiki


def test_a_reader_in_another_process_sees_each_commit(tmp_path):
    code = (
        "reader = Reader.open(directory)\n"
        "for line in sys.stdin:\n"
        "    with reader.snapshot() as snapshot:\n"
        "        names = [found.path for found in snapshot.documents()]\n"
        "        print(snapshot.position.generation, *names, flush=True)\n"
    )
    with (
        StoreWriter.open(tmp_path, FINGERPRINT) as writer,
        store_process(code, tmp_path) as process,
    ):
        assert ask(process) == "1"
        put(writer, file("a.md"))
        assert ask(process) == "2 a.md"
        with writer.transaction() as transaction:
            transaction.put(file("b.md"), READ_NS)
            assert ask(process) == "2 a.md"
        assert ask(process) == "3 a.md b.md"
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_two_processes_write_by_turns(tmp_path):
    code = (
        "writer = StoreWriter.open(directory, FINGERPRINT)\n"
        "for line in sys.stdin:\n"
        "    print(put(writer, file(line.strip(), links=[wiki('a')])).generation, flush=True)\n"
        "writer.close()\n"
    )
    with (
        StoreWriter.open(tmp_path, FINGERPRINT) as writer,
        store_process(code, tmp_path) as process,
    ):
        assert ask(process, "b.md") == "2"
        assert put(writer, file("a.md")).generation == 3
        assert ask(process, "c.md") == "4"
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        put(writer, file("d.md"))
    with Reader.open(tmp_path) as reader, reader.snapshot() as snapshot:
        assert {link.target for link in snapshot.all_links()} == {"docs:a.md"}
        assert snapshot.ledger.count("documents") == 4
        snapshot.verify(deep=True)


@pytest.mark.parametrize("moment", ["within the transaction", "after the commit"])
def test_a_killed_writer_leaves_the_last_generation(tmp_path, moment):
    commit = "" if moment == "after the commit" else "    wait()\n"
    code = (
        "def wait():\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "writer = StoreWriter.open(directory, FINGERPRINT)\n"
        "with writer.transaction() as transaction:\n"
        "    transaction.remove('docs:a.md')\n"
        "    for number in range(300):\n"
        "        transaction.put(file(f'{number}.md', [Section('One')] * 10), READ_NS)\n"
        f"{commit}"
        "wait()\n"
    )
    with StoreWriter.open(tmp_path, FINGERPRINT) as writer:
        before = put(writer, file("a.md", [Section("One")], [wiki("0")]))
    with store_process(code, tmp_path) as process:
        assert read_line(process) == "ready"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    committed = moment == "after the commit"
    with Reader.open(tmp_path) as reader, reader.snapshot() as snapshot:
        assert snapshot.position.generation == before.generation + committed
        assert snapshot.ledger.count("documents") == (300 if committed else 1)
        snapshot.verify(deep=True)
    with StoreWriter.open(tmp_path, FINGERPRINT, deep=True) as writer:
        assert writer.rebuilt is None
        assert put(writer, file("z.md")).generation == before.generation + committed + 1


def test_kills_at_random_moments_leave_whole_generations(tmp_path):
    code = (
        "writer = StoreWriter.open(directory, FINGERPRINT)\n"
        "print('ready', writer.rebuilt, flush=True)\n"
        "number = writer.position.generation\n"
        "while True:\n"
        "    number += 1\n"
        "    intro = f'{number}\\n'\n"
        "    put(writer, *(file(f'{n}.md', intro=intro, links=[wiki('0')]) for n in range(20)))\n"
        "    print(number, flush=True)\n"
    )
    rng = random.Random(5)
    last = 0
    for _ in range(5):
        with store_process(code, tmp_path) as process:
            assert read_line(process) == "ready None"
            for _ in range(rng.randrange(1, 4)):
                last = max(last, int(read_line(process)))
            process.kill()
            process.wait(timeout=60)
        with Reader.open(tmp_path) as reader, reader.snapshot() as snapshot:
            assert snapshot.position.generation >= last
            texts = {leaf.chunk.text for leaf in snapshot.leaves()}
            # All twenty documents are of one and the same transaction.
            assert texts == {f"{snapshot.position.generation}\n"}
            assert snapshot.ledger.count("documents") == 20
            snapshot.verify(deep=True)
