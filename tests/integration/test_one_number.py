"""The number beside a result: of this passage alone, and the order of the results."""

import pytest

from ragdocs.app import App
from ragdocs.config.loading import load_config
from ragdocs.search.candidates import ALIKE
from ragdocs.search.requests import QueryRequest
from tests.support.indexes import write_all

PAGES = {
    "tls.md": "# Certificates\n\nRenew the TLS certificate with `certbot renew` every 60 days.\n",
    "backup.md": "# Backups\n\nA snapshot of the database is taken each night at two.\n",
    "deploy.md": "# Deployments\n\nPush a tag, and the pipeline deploys it to the cluster.\n",
    "oncall.md": "# On call\n\nWho is on call answers the pager within ten minutes.\n",
}
QUESTION = "how do I renew the TLS certificate"


@pytest.fixture
def ask(tmp_path):
    """Asks the real program about these files; paths with their numbers, in order."""

    def asked(pages, question):
        docs = write_all(tmp_path / f"docs-{len(list(tmp_path.iterdir()))}", pages)
        flags = {"indexing": {"documents_path": str(docs), "index_path": f"{docs}-index"}}
        environ = {"HOME": str(tmp_path)}
        with App(load_config(cwd=tmp_path, environ=environ, flags=flags)) as app:
            with app.manager() as manager:
                manager.update()
                while manager.fill_some().has_more:
                    pass
            found = app.search(QueryRequest(queries=(question,))).results
        return [(result.path, result.confidence) for result in found]

    return asked


def test_a_copy_or_a_second_answer_hardly_changes_a_number(ask):
    """Even in so small a folder, where each file changes how rare the words are."""
    (first, alone), *_ = ask(PAGES, QUESTION)
    assert first == "tls.md"
    ((_, copied), *_) = ask({**PAGES, "copy/tls.md": PAGES["tls.md"]}, QUESTION)
    assert copied == pytest.approx(alone, abs=0.03)
    second = "# Renewal\n\nTo renew the TLS certificate, run `certbot renew` and reload nginx.\n"
    found = dict(ask({**PAGES, "other.md": second}, QUESTION))
    assert found["tls.md"] == pytest.approx(alone, abs=0.03)


def test_a_question_whose_answer_is_gone_is_told_so(ask):
    (_, there), *_ = ask(PAGES, QUESTION)
    (_, gone), *_ = ask({k: v for k, v in PAGES.items() if k != "tls.md"}, QUESTION)
    assert there > 0.5 > 0.1 > gone


def test_the_order_is_that_of_the_numbers(ask):
    for question in (QUESTION, "who is paged at night", "database snapshot pipeline"):
        numbers = [confidence for _, confidence in ask(PAGES, question)]
        for place, number in enumerate(numbers):
            assert number <= min(numbers[:place], default=1.0) + ALIKE + 1e-9


@pytest.mark.parametrize("question", ["foo", "TLS certificate", "zzz qqq"])
def test_one_short_file_is_no_sure_answer_to_whatever_is_asked(ask, question):
    ((_, confidence),) = ask({"a.md": "hi\n"}, question)
    assert confidence < 0.25


def test_a_ticket_that_nobody_has_is_not_found_in_another(ask):
    tickets = {
        f"{number}.md": f"# Ticket TKT-{number}\n\nThe printer of room {number} jams.\n"
        for number in (90930, 90931, 90932)
    }
    (path, has), *_ = ask(tickets, "TKT-90931")
    assert path == "90931.md"
    (_, lacks), *_ = ask(tickets, "TKT-99999")
    assert lacks < 0.5 < has


def test_a_copy_of_the_file_with_a_ticket_leaves_it_first_and_as_sure(ask):
    tickets = {
        f"{number}.md": f"# Ticket TKT-{number}\n\nThe printer of room {number} jams.\n"
        for number in (90930, 90931, 90932)
    }
    question = "what became of TKT-90931 after the printer was moved"
    (path, alone), *_ = ask(tickets, question)
    (copied_path, copied), *_ = ask({**tickets, "old/90931.md": tickets["90931.md"]}, question)
    assert path.endswith("90931.md")
    assert copied_path.endswith("90931.md")
    assert copied == pytest.approx(alone, abs=0.03)


def test_a_word_in_capitals_is_not_that_of_the_same_stem(ask):
    pages = {**PAGES, "door.md": "# Doors\n\nLock the door of the server room when you leave.\n"}
    (_, confidence), *_ = ask(pages, "SELECT FOR UPDATE SKIP LOCKED")
    assert confidence < 0.5


VAULT = {
    **PAGES,
    "clinic.md": "# Vaccinations\n\nThe tetanus shot is due in 2031, at the clinic.\n",
    "printer.md": "# TKT-90831\n\nThe printer of the second floor has no toner left.\n",
    "vpn.md": "# Network\n\nThe password manager fills in the login of the VPN.\n",
}


def test_a_question_in_capitals_is_told_as_the_same_one_in_small_letters(ask):
    for question in ("who waters the garden", "where is the bicycle key of the manager"):
        small = max(confidence for _, confidence in ask(VAULT, question))
        loud = max(confidence for _, confidence in ask(VAULT, question.upper()))
        one = question.replace("manager", "MANAGER").replace("waters", "WATERS")
        assert loud == pytest.approx(small, abs=0.1)
        assert max(told for _, told in ask(VAULT, one)) < 0.5


@pytest.mark.parametrize(
    "question",
    [
        "what will bitcoin cost in 2031?",
        "which tools, e.g. hammers, do I need",
        "case TKT-90832 flight to Tokyo",
    ],
)
def test_a_year_an_abbreviation_or_another_ticket_is_no_sign_of_an_answer(ask, question):
    assert max(confidence for _, confidence in ask(VAULT, question)) < 0.5


def test_a_ticket_that_nobody_has_is_not_the_one_beside_it(ask):
    has = max(confidence for _, confidence in ask(VAULT, "case TKT-90831 printer toner"))
    lacks = max(confidence for _, confidence in ask(VAULT, "case TKT-90832 printer toner"))
    assert has > 0.9
    assert lacks < 0.6


@pytest.mark.parametrize("word", ["the", "a", "how", "1"])
def test_a_word_that_stands_everywhere_is_no_question(ask, word):
    assert max((confidence for _, confidence in ask(VAULT, word)), default=0.0) < 0.3
