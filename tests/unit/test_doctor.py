"""How the checks are run: each by itself, none for ever, and every repair said."""

import threading

import pytest

from ragdocs.cli.status import print_examination
from ragdocs.diagnosis.case import Finding, Level, Repair, is_fine
from ragdocs.diagnosis.doctor import CHECKS, Check, examine, repair
from ragdocs.errors import IndexLocked
from tests.support.indexes import NOTES, Bench

FINE = Finding(Level.OK, "fine")


@pytest.fixture
def case(tmp_path):
    return Bench(tmp_path).case()


def fails(_):
    yield FINE
    raise ZeroDivisionError("nobody foresaw it")


def refuses(_):
    raise IndexLocked("it is busy: try again")


def test_a_check_that_fails_does_not_keep_the_others(case):
    checks = [Check("a", fails), Check("b", refuses), Check("c", lambda _: [FINE])]
    found = list(examine(case, checks))
    assert [(one.check, one.level.value) for one in found] == [
        ("a", "ok"),
        ("a", "error"),
        ("b", "error"),
        ("c", "ok"),
    ]
    assert "ZeroDivisionError" in found[1].message
    assert found[2].message == "it is busy: try again"


def test_a_check_that_never_ends_is_left_behind(case):
    end = threading.Event()

    def waits(_):
        yield FINE
        end.wait(60)

    # Long enough for a thread to begin on a busy machine.
    found = list(examine(case, [Check("a", waits, seconds=0.5), Check("b", lambda _: [FINE])]))
    end.set()
    assert [one.level.value for one in found] == ["ok", "warning", "ok"]
    assert "did not finish" in found[1].message


def test_repairs_are_made_once_and_in_order():
    made: list[str] = []

    def finding(name, problem=None):
        def run():
            made.append(name)
            if problem:
                raise problem
            return f"did {name}"

        return Finding(Level.ERROR, name, repair=Repair(name, run))

    refused = PermissionError(13, "not permitted")
    found = [finding("a"), FINE, finding("b", refused), finding("a"), finding("c")]
    done = list(repair(found))
    assert made == ["a", "b", "c"]
    assert [(one.name, one.done) for one in done] == [("a", True), ("b", False), ("c", True)]
    assert "not permitted" in done[1].message


def test_only_warnings_and_errors_count_as_problems():
    assert is_fine([FINE, Finding(Level.NOTE, "")])
    assert not is_fine([FINE, Finding(Level.WARNING, "")])
    assert not is_fine([Finding(Level.ERROR, "")])


def test_every_check_has_a_name_of_its_own():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)


def test_what_is_printed_when_something_was_repaired(tmp_path, capsys):
    bench = Bench(tmp_path)
    bench.build({**NOTES, "x.md": "[[no\u202ewhere]]\n"})
    bench.index.chmod(0o755)
    raw = bench.store.read_bytes()
    bench.store.write_bytes(raw.replace(b"Tomatoes need", b"Tomatoes knew"))
    found = print_examination(bench.case(), fix=True)
    before, _, after = capsys.readouterr().out.partition("After the repairs:")
    assert is_fine(found)
    assert "error    store" in before
    assert "done: rebuilt the index" in before
    assert r"docs:x.md:1: no\u202ewhere" in before
    assert "\u202e" not in before
    assert "ok       store" in after
    assert "ok       permissions" in after
    assert "platform" not in after
    assert "0 of 4 passages have vectors" in after  # those of a damaged store are gone, too
    assert after.endswith("2 notes.\n")


def test_what_is_printed_when_nothing_is_wrong(tmp_path, capsys):
    bench = Bench(tmp_path)
    bench.build()
    assert is_fine(print_examination(bench.case(), fix=True))
    printed = capsys.readouterr().out
    assert printed.endswith("No problems found.\n")
    assert "After that" not in printed
