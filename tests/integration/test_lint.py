"""`ragdocs lint` and `index_status` with `lint`: what is found, where, and in which form."""

import json
import os
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragdocs.config.choices import LintRule
from ragdocs.lint.findings import RULES
from tests.support.indexes import write
from tests.support.mcp_clients import in_memory, indexed_app
from tests.support.program import called

PASSAGE = (
    "The engine turns a crank shaft with four pistons, each of which is driven by burning fuel, "
    "and a heavy wheel keeps it turning between two strokes; without the wheel it would stop. "
    "Oil runs through small holes in every part that moves, and a pump brings it back up again."
)


class Folder:
    """A folder of documents, and the program that checks it."""

    def __init__(self, path):
        self.path = path
        (path / "docs").mkdir()

    def write(self, texts):
        for name, text in texts.items():
            write(self.path / "docs", name, text)

    def run(self, *words, **environ):
        cache = os.environ.get("XDG_CACHE_HOME", "")
        home = {"HOME": str(self.path), **({"XDG_CACHE_HOME": cache} if cache else {})}
        place = ["--docs", "docs", "--index", "index"]
        return called(self.path, "lint", *words, *place, **home, **environ)

    def report(self, *words, **environ):
        done = self.run(*words, "--json", **environ)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def found(self, *words, **environ):
        """Rule, path and line of each finding."""
        findings = self.report(*words, **environ)["findings"]
        return [(one["rule"], one["path"], one["line_start"]) for one in findings]

    def messages(self, *words, **environ):
        return [one["message"] for one in self.report(*words, **environ)["findings"]]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_sound_documents_have_no_findings(folder):
    folder.write(
        {
            "a.md": "# A\n\nSee [[b]], [[b#Part two]], [b](b.md#part-two), [[b#^first]], [](#a).\n",
            "b.md": "# B\n\n## Part two\n\nText. ^first\n\nSee [[a]] and [the script](run.py).\n",
            "run.py": "print()\n",
        }
    )
    done = folder.run()
    assert (done.returncode, done.stdout) == (0, "No problems found in 2 documents.\n")


NOWHERE = "no document has this name"
NO_FILE = "there is no such file"
LINKS = [
    ("[[Engin]]", "broken-link", f"`[[Engin]]`: {NOWHERE}; did you mean [[engine]]?"),
    ("![[Engin]]", "broken-link", f"`![[Engin]]`: {NOWHERE}; did you mean [[engine]]?"),
    ("[[Xylophone]]", "broken-link", f"`[[Xylophone]]`: {NOWHERE}"),
    ("[x](engne.md)", "broken-link", f"`(engne.md)`: {NO_FILE}; did you mean engine.md?"),
    (
        "[x](old/engine.md#a)",
        "broken-link",
        f"`(old/engine.md#a)`: {NO_FILE}; did you mean engine.md?",
    ),
    ("[x](run.py)", "broken-link", f"`(run.py)`: {NO_FILE}"),
    ("[[engine#Gone]]", "broken-heading", "`[[engine#Gone]]`: `engine.md` has no heading `Gone`"),
    (
        "[[engine#Oil pmp]]",
        "broken-heading",
        "`[[engine#Oil pmp]]`: `engine.md` has no heading `Oil pmp`; did you mean `Oil pump`?",
    ),
    (
        "[[#Hom]]",
        "broken-heading",
        "`[[#Hom]]`: this document has no heading `Hom`; did you mean `Home`?",
    ),
    (
        "[x](engine.md#oil-pmp)",
        "broken-anchor",
        "`(engine.md#oil-pmp)`: `engine.md` has no heading or anchor `oil-pmp`; "
        "did you mean `#oil-pump`?",
    ),
    ("[x](#gone)", "broken-anchor", "`(#gone)`: this document has no heading or anchor `gone`"),
    (
        "[[engine#^fact]]",
        "broken-block",
        "`[[engine#^fact]]`: `engine.md` has no block `^fact`; did you mean `^facts`?",
    ),
    ("[[parts]]", "ambiguous-link", "`[[parts]]` could mean `a/parts.md` and `b/parts.md`"),
    (
        "[[engine#Notes]]",
        "ambiguous-heading",
        "`[[engine#Notes]]`: `engine.md` has this heading 2 times (lines 7 and 9); "
        "the link leads to the first",
    ),
]


@pytest.mark.parametrize(("link", "rule", "message"), LINKS)
def test_a_broken_link_is_found_with_a_suggestion(folder, link, rule, message):
    folder.write(
        {
            "home.md": f"# Home\n\nSee [[engine]].\nAlso {link}.\n",
            "engine.md": "# Engine\n\n## Oil pump\n\nIt pumps. ^facts\n\n## Notes\n\n## Notes\n",
            "a/parts.md": "# A\n\nSee [engine](../engine.md).\n",
            "b/parts.md": "# B\n\nSee [engine](../engine.md).\n",
        }
    )
    [finding] = folder.report("--ignore", "ambiguous-name")["findings"]
    assert (finding["rule"], finding["message"]) == (rule, message)
    assert (finding["path"], finding["line_start"], finding["line_end"]) == ("home.md", 4, 4)
    written = (folder.path / "docs/home.md").read_bytes()
    assert written[finding["byte_start"] : finding["byte_end"]].decode() == link
    assert finding["severity"] == RULES[LintRule(rule)].severity


@pytest.mark.parametrize(
    "link",
    [
        "[x](https://example.org/gone.md)", "[x](mailto:a@example.org)", "![x](gone.png)",
        "[x](other.md#top)", "[x](other.md#mark)", "[x](other.md#named)", "[x](other.md#own-id)",
        "[x](folder/)", "[x](folder)", "[x](LICENSE)", "[x](data.csv)", "[x](hidden/skipped.md)",
        "[x](other.md#:~:text=here)", "[[other#A part]]", "[[other#a-part]]", "[[Other title]]",
        "[[by alias]]", "[[other#^after-embed]]", "[[folder/deep]]", "[x](other)",
        "`[[not a link]]`", "<!-- [[not]] -->",
    ],
)  # fmt: skip
def test_a_link_that_works_is_not_reported(folder, link):
    folder.write(
        {
            "home.md": f"# Home\n\nSee [[other]], [[deep]] and {link}.\n",
            "other.md": "---\ntitle: Other title\naliases: [by alias]\n---\n# O\n\n## A part\n\n"
            "<a id=\"mark\"></a> <a name='named'></a>\n\n## Own {#own-id}\n\n"
            "![[a.png]]^after-embed\n",
            "folder/deep.md": "# Deep\n",
            "LICENSE": "MIT\n",
            "data.csv": "a,b\n",
            "hidden/skipped.md": "# Skipped\n",
            ".gitignore": "hidden/\n",
        }
    )
    assert folder.report()["findings"] == []


def test_links_that_cannot_be_judged_are_counted_and_not_reported(folder):
    folder.write(
        {
            "a.md": "# A\n\n[site](/en/docs/intro) [up](../../README.md) [[sheet.csv]] "
            "[x]({{url}}) [b](b.md)\n",
            "b.md": "# B\n",
        }
    )
    report = folder.report()
    assert report["findings"] == []
    assert report["unchecked"] == {"outside": 1, "site": 1, "attachments": 1, "templates": 1}
    assert "Links not checked: 1 addresses of a web site" in folder.run().stdout


def test_an_address_from_the_root_is_checked_where_the_folder_exists(folder):
    folder.write({"guide/a.md": "# A\n\n[b](/guide/gone) [c](/nowhere/c.md)\n"})
    assert [message.partition(":")[0] for message in folder.messages()] == [
        "`(/guide/gone)`",
        "`(/nowhere/c.md)`",
    ]


def test_a_link_cannot_ask_what_is_outside_of_the_tree(folder):
    """Neither by dots nor through a link: whether a file exists there stays unknown."""
    write(folder.path, "secret.txt", "x\n")
    os.symlink(folder.path, folder.path / "docs/out")
    folder.write(
        {"a.md": "# A\n\n[x](../secret.txt) [y](../gone.txt) [z](out/secret.txt) [o](out/no)\n"}
    )
    report = folder.report()
    assert report["findings"] == []
    assert report["unchecked"]["outside"] == 2


def test_an_orphan_neither_links_nor_is_linked(folder):
    folder.write(
        {
            "a.md": "# A\n\nSee [[b]] and [[#A]].\n",
            "b.md": "# B\n",
            "alone.md": "# Alone\n\nSee [above](#alone).\n",
        }
    )
    assert folder.found() == [("orphan", "alone.md", 1)]


def test_where_nothing_is_linked_a_document_is_an_orphan_only_by_request(folder):
    folder.write({"a.md": "# A\n", "b.md": "# B\n"})
    assert folder.found() == []
    assert [path for _, path, _ in folder.found("--select", "orphan")] == ["a.md", "b.md"]


def test_passages_that_nearly_repeat_another_document_are_found(folder):
    other = PASSAGE.replace("four pistons", "six pistons")
    folder.write(
        {"a.md": f"# A\n\n{PASSAGE}\n", "b.md": f"# A\n\n{other}\n", "c.md": f"# A\n\n{PASSAGE}\n"}
    )
    report = folder.report()
    assert [(one["rule"], one["path"]) for one in report["findings"]] == [
        ("near-copy", "b.md"),
        ("near-copy", "c.md"),
    ]
    near, same = report["findings"]
    assert re.fullmatch(r"nearly repeats a\.md:1-3 \(9\d% the same wording\)", near["message"])
    assert same["message"] == "repeats a.md:1-3 (the same wording)"
    first = {"tree": "docs", "path": "a.md", "file": "docs/a.md", "line_start": 1, "line_end": 3}
    assert near["related"] == [first]


def test_pages_are_stale_from_the_configured_age_on(folder):
    old, new = (datetime.now(UTC) - timedelta(days=days) for days in (400, 10))
    folder.write(
        {
            "old.md": f"---\ndate: {old:%Y-%m-%d}\n---\n# Old\n",
            "new.md": f"---\ndate: {new:%Y-%m-%d}\n---\n# New\n",
        }
    )
    assert folder.found() == []
    assert folder.found(RAGDOCS_LINT__STALE_DAYS="365") == [("stale-page", "old.md", 1)]
    [message] = folder.messages(RAGDOCS_LINT__STALE_DAYS="365")
    assert message == f"dated {old:%Y-%m-%d}, 400 days ago (limit: 365)"
    assert len(folder.found(RAGDOCS_LINT__STALE_DAYS="5")) == 2
    done = folder.run("--select", "stale-page")
    assert (done.returncode, "set lint.stale_days" in done.stderr) == (2, True)


def test_a_page_without_a_date_is_found_where_most_have_one(folder):
    folder.write(
        {
            "a.md": "---\ndate: 2026-01-01\n---\n# A\n",
            "b.md": "---\ncreated: 2026-01-01\n---\n# B\n",
            "c.md": "# C\n",
        }
    )
    assert folder.found() == [("undated-page", "c.md", 1)]
    folder.write({"d.md": "# D\n", "e.md": "# E\n", "f.md": "# F\n"})
    assert folder.found() == []
    assert len(folder.found("--select", "undated-page")) == 4


def test_a_page_without_a_title_is_found_unless_that_is_the_habit_of_a_vault(folder):
    folder.write(
        {
            "plain.md": "Only text.\n\n## A part\n",
            "heading.md": "Text.\n\n# Heading\n",
            "front.md": "---\ntitle: Front\n---\nText.\n",
        }
    )
    assert folder.found() == [("missing-title", "plain.md", 1)]
    folder.write({"v1.md": "See [[plain]].\n", "v2.md": "See [[v1]].\n", "v3.md": "See [[v2]].\n"})
    assert [one for one in folder.found() if one[0] == "missing-title"] == []
    assert len(folder.found("--select", "missing-title")) == 4


def test_a_title_is_missed_on_every_page_that_is_not_of_a_vault(folder):
    folder.write({"a.md": "Only text.\n", "b.md": "More [text](a.md).\n"})
    assert folder.found() == [("missing-title", "a.md", 1), ("missing-title", "b.md", 1)]


def test_names_that_several_documents_share_are_found_where_wikilinks_are_used(folder):
    folder.write(
        {
            "a/setup.md": "# Setup A\n",
            "b/setup.md": "---\naliases: [Start]\n---\n# Setup B\n",
            "c.md": "---\naliases: [Start]\n---\n# C\n\nSee [[a/setup]], [[b/setup]].\n",
        }
    )
    assert folder.messages() == [
        "the file name `setup` is shared by `a/setup.md` and `b/setup.md`; "
        "`[[setup]]` is ambiguous",
        "the alias `Start` is shared by `b/setup.md` and `c.md`; `[[Start]]` is ambiguous",
    ]
    folder.write({"c.md": "---\naliases: [Start]\n---\n# C\n\n[a](a/setup.md) [b](b/setup.md)\n"})
    assert folder.found() == []
    assert len(folder.found("--select", "ambiguous-name")) == 2


def test_files_that_are_not_or_only_partly_indexed_are_found(folder):
    folder.write({"odd.md": "---\ntags: {a: [}\n---\n# Odd\n", "binary.md": b"\x89PNG\x00\x00" * 9})
    write(folder.path / "docs", "bytes.md", b"# Bytes\n\nCaf\xe9 \xff\xfe.\n")
    rules = {path: rule for rule, path, _ in folder.found()}
    assert rules == {
        "binary.md": "not-indexed",
        "bytes.md": "partly-indexed",
        "odd.md": "front-matter",
    }


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("several"))
    folder.write(
        {
            "guide/a.md": "# A\n\nSee [[gone]] and [b](b.md#gone).\n",
            "guide/b.md": "# B\n\nSee [[a]].\n",
            "other/c.md": "# C\n\nSee [x](x.md).\n",
            "other/strange name#1.md": "# D\n\nSee [[nowhere]].\n",
        }
    )
    return folder


def test_lines_are_those_of_a_linter_and_end_with_a_summary(several):
    done = several.run()
    assert done.returncode == 1
    assert done.stdout == (
        "docs/guide/a.md:3: broken-link `[[gone]]`: no document has this name\n"
        "docs/guide/a.md:3: broken-anchor `(b.md#gone)`: `guide/b.md` has no heading or anchor "
        "`gone`\n"
        "docs/other/c.md:3: broken-link `(x.md)`: there is no such file\n"
        "docs/other/strange name#1.md:3: broken-link `[[nowhere]]`: no document has this name\n"
        "\n"
        "     3  broken-link\n"
        "     1  broken-anchor\n"
        "Found 4 problems in 4 documents: 4 errors.\n"
    )


def test_rules_are_selected_and_ignored(several):
    assert {rule for rule, _, _ in several.found("--select", "broken-anchor")} == {"broken-anchor"}
    assert {rule for rule, _, _ in several.found("--ignore", "broken-link")} == {"broken-anchor"}
    both = several.found("--select", "broken-link", "--ignore", "broken-link")
    assert both == []
    counts = several.report("--select", "broken-anchor", "--select", "orphan")["counts"]
    assert counts == {"broken-anchor": 1, "orphan": 0}


def test_rules_are_switched_in_the_configuration(several):
    in_select = several.found(RAGDOCS_LINT__SELECT='["broken-anchor"]')
    assert {rule for rule, _, _ in in_select} == {"broken-anchor"}
    in_ignore = several.found(RAGDOCS_LINT__IGNORE='["broken-link", "broken-anchor"]')
    assert in_ignore == []
    typed = several.found("--select", "broken-link", RAGDOCS_LINT__IGNORE='["broken-link"]')
    assert len(typed) == 3
    done = several.run(RAGDOCS_LINT__SELECT='["broken-lnk"]')
    assert done.returncode == 2
    assert "lint.select" in done.stderr


def test_the_threshold_decides_what_is_a_near_copy(folder):
    other = PASSAGE.replace("four pistons", "six pistons")
    folder.write({"a.md": f"# A\n\n{PASSAGE}\n", "b.md": f"# A\n\n{other}\n"})
    assert folder.found(RAGDOCS_LINT__NEAR_COPY_THRESHOLD="0.8") == [("near-copy", "b.md", 1)]
    assert folder.found(RAGDOCS_LINT__NEAR_COPY_THRESHOLD="0.99") == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["docs/guide"], {"guide/a.md"}),
        (["guide"], {"guide/a.md"}),
        (["docs/other/c.md"], {"other/c.md"}),
        (["docs:other"], {"other/c.md", "other/strange name#1.md"}),
        (["guide", "other/c.md"], {"guide/a.md", "other/c.md"}),
        (["docs/guide/b.md"], set()),
        (["c.md"], {"other/c.md"}),
        (["[[c]]"], {"other/c.md"}),
        (["docs"], {"guide/a.md", "other/c.md", "other/strange name#1.md"}),
        (["--tree", "docs", "guide"], {"guide/a.md"}),
    ],
)
def test_a_path_confines_the_report_and_not_the_check(several, given, expected):
    assert {path for _, path, _ in several.found(*given)} == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--select", "broken-lin"], "there is no rule 'broken-lin'; did you mean broken-link?"),
        (["--ignore", "x"], "the rules are ambiguous-heading, "),
        (["guidee"], "no document is at or below `guidee`; the nearest are `guide`, "),
        (["--tree", "nope"], "there is no tree `nope`; there is `docs`"),
        (["--sarif", "--json"], "--json and --sarif exclude each other"),
    ],
)
def test_wrong_use_is_explained(several, words, said):
    done = several.run(*words)
    assert done.returncode == 2
    assert bool(done.stdout) is ("--json" in words)
    assert said in done.stderr


def test_without_an_index_there_is_nothing_to_check(folder):
    folder.write({"a.md": "# A\n\n[[gone]]\n"})
    assert folder.run("--no-update").returncode == 3
    assert folder.found() == [("broken-link", "a.md", 3)]
    folder.write({"a.md": "# A\n"})
    assert folder.found("--no-update") == [("broken-link", "a.md", 3)]
    assert folder.found() == []


def test_no_model_is_loaded_and_no_vector_is_made(folder, monkeypatch):
    from ragdocs.embedding.builtin import BuiltinEmbedder

    def refuse(*_args, **_kwargs):
        raise AssertionError("lint must not need a model")

    for name in ("load", "embed_passages", "embed_query"):
        if hasattr(BuiltinEmbedder, name):
            monkeypatch.setattr(BuiltinEmbedder, name, refuse)
    folder.write({"a.md": f"# A\n\n{PASSAGE} [[gone]]\n"})
    assert folder.found() == [("broken-link", "a.md", 3)]


def test_sarif_has_what_the_format_requires_and_is_always_the_same(several):
    done = several.run("--sarif")
    assert done.returncode == 1
    assert several.run("--sarif").stdout == done.stdout
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "ragdocs"
    ids = [rule["id"] for rule in driver["rules"]]
    assert ids == [rule.value for rule in RULES]
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert len(run["results"]) == 4
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        [location] = result["locations"]
        physical = location["physicalLocation"]
        assert physical["region"] == {"startLine": 3, "endLine": 3}
        assert re.fullmatch(r"docs/[\w/.%]+", physical["artifactLocation"]["uri"])
    last = run["results"][-1]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert last == {"uri": "docs/other/strange%20name%231.md"}
    related = run["results"][1]["relatedLocations"][0]
    assert related["physicalLocation"]["artifactLocation"] == {"uri": "docs/guide/b.md"}


# What the documentation says.

PAGE = Path(__file__).parents[2] / "docs/lint.md"


def test_the_page_of_rules_is_that_of_the_program():
    rows = re.findall(r"^\| `(.+?)` \| (\w+) \| (.+?) \| (.*?) ?\|$", PAGE.read_text("utf-8"), re.M)
    shown = {rule: (severity, summary, unless) for rule, severity, summary, unless in rows}
    assert shown == {
        rule.value: (info.severity.value, info.summary, info.unless) for rule, info in RULES.items()
    }
    assert set(RULES) == set(LintRule)


def test_the_session_that_is_shown_is_what_happens(folder):
    files, session = re.findall(r"^```text\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    for text in re.split(r"\n(?=docs/)", files):
        name, _, content = text.partition("\n")
        write(folder.path, name, content)
    command, _, printed = session.partition("\n")
    assert command == "$ ragdocs lint --docs docs"
    assert folder.run().stdout == printed


def test_our_own_documentation_has_no_broken_links():
    project = PAGE.parents[1]
    with tempfile.TemporaryDirectory() as index:
        words = ("lint", "--docs", "docs", "--index", index, "--json", "--ignore", "near-copy")
        done = called(project, *words)
    assert [one for one in json.loads(done.stdout)["findings"] if one["severity"] == "error"] == []


# Over MCP.

TEXTS = {
    "a.md": "# A\n\nSee [[gone]] and [[b#Gone]].\n",
    "b.md": "# B\n\nSee [[a]].\n",
    "many.md": "# Many\n\n" + "\n".join(f"See [[missing page {at}]]." for at in range(300)) + "\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with in_memory(indexed_app(tmp_path_factory.mktemp("lint-mcp"), TEXTS)) as server:
        yield server


def test_the_status_has_findings_on_request_within_its_budget(server):
    assert "lint" not in server.call("index_status").data
    assert "lint" not in server.call("index_status", lint=False).data
    asked = server.call("index_status", lint=True)
    assert asked.data["lint"] == server.call("index_status", lint=["all"]).data["lint"]
    lint = asked.data["lint"]
    assert lint["counts"]["broken-link"] == 301
    assert lint["counts"]["broken-heading"] == 1
    assert lint["more"] == 302 - len(lint["findings"])
    assert 10 < len(lint["findings"]) < 100
    assert lint["findings"][0]["path"] == "a.md"
    assert asked.tokens <= 5_000
    assert "lint: 301 broken-link, 1 broken-heading\n" in asked.text
    assert "- docs:a.md:3 broken-link: `[[gone]]`: no document has this name" in asked.text
    assert f"{lint['more']} more: name fewer rules" in asked.text
    assert asked.data["index"]["state"] == "ready"


@pytest.mark.parametrize("given", [["broken-heading"], "broken-heading"])
def test_the_rules_of_the_status_can_be_named(server, given):
    lint = server.call("index_status", lint=given).data["lint"]
    assert lint["counts"] == {"broken-heading": 1}
    assert [one["line_start"] for one in lint["findings"]] == [3]


def test_wrong_rules_are_refused_with_advice(server):
    asked = server.call("index_status", lint=["broken-headin"])
    assert asked.is_error
    assert "did you mean broken-heading?" in asked.text
    asked = server.call("index_status", lint=7)
    assert asked.is_error
    assert "lint is 7: it must be a list of at most 50" in asked.text
    assert server.call("index_status", lint=["orphan"] * 51).is_error


def test_lint_adds_little_to_the_list_of_tools(server):
    tools = server.use(lambda client: client.list_tools()).tools
    [tool] = [tool for tool in tools if tool.name == "index_status"]
    given = json.dumps(tool.input_schema["properties"]["lint"], separators=(",", ":"))
    taken = json.dumps(tool.output_schema["properties"]["lint"], separators=(",", ":"))
    assert len(f'"lint":{given},"lint":{taken}') <= 250
