import pytest

from ragdocs.models import Link, LinkKind, LinkSyntax, Span
from ragdocs.parsers.ids import SlugCounter, document_id
from ragdocs.parsers.link_targets import Anchors, Catalogue, Names, fold, link_key, match_key
from tests.support.stores import markdown, related, wiki


def document(path, title="", aliases=(), tree="docs"):
    return Names(0, document_id(tree, path), tree, path, title, tuple(aliases))


def resolve(link, *documents, source="source.md"):
    """Where the link leads, and the same when only documents with its key are looked at."""
    origin = document(source) if isinstance(source, str) else source
    everything = [origin, *documents]
    found = Catalogue(everything).resolve(origin, link)
    key = link_key(link)
    few = [names for names in everything if key in names.match_keys()]
    assert Catalogue(few).resolve(origin, link) == found
    return found and f"{found.tree}:{found.path}"


def test_a_wikilink_names_a_path_from_the_root_first():
    near, far = document("a/b/x.md"), document("b/x.md")
    assert resolve(wiki("b/x"), near, far, source="a/s.md") == "docs:b/x.md"
    assert resolve(wiki("b/x.md"), near, far, source="a/s.md") == "docs:b/x.md"
    assert resolve(wiki("b/x"), near, source="a/s.md") == "docs:a/b/x.md"


def test_a_markdown_link_names_a_relative_path_first():
    near, far = document("a/b/x.md"), document("b/x.md")
    assert resolve(markdown("b/x.md"), near, far, source="a/s.md") == "docs:a/b/x.md"
    assert resolve(markdown("b/x.md"), far, source="a/s.md") == "docs:b/x.md"
    assert resolve(markdown("/b/x.md"), near, far, source="a/s.md") == "docs:b/x.md"
    assert resolve(markdown("/x.md"), near, far, source="a/s.md") is None


def test_dots_are_followed_and_never_leave_the_tree():
    inside = document("x.md"), document("a/y.md")
    assert resolve(markdown("../x.md"), *inside, source="a/s.md") == "docs:x.md"
    assert resolve(markdown("./y.md"), *inside, source="a/s.md") == "docs:a/y.md"
    assert resolve(markdown("b/../y.md"), *inside, source="a/s.md") == "docs:a/y.md"
    assert resolve(wiki("../x"), *inside, source="a/s.md") == "docs:x.md"
    assert resolve(wiki("a/../x"), *inside, source="a/s.md") == "docs:x.md"
    for beyond in ("../../x.md", "../x.md/../../x.md", "a/../../../x.md", "../../etc/passwd"):
        assert resolve(markdown(beyond), *inside, source="a/s.md") is None
        assert resolve(wiki(beyond), *inside, source="a/s.md") is None
    # An explicitly relative path is not looked for elsewhere.
    assert resolve(markdown("./x.md"), *inside, source="a/s.md") is None


@pytest.mark.parametrize("path", ["x.md", "x.markdown", "x.txt", "x.MD", "x"])
def test_the_extension_may_be_left_out(path):
    for link in (wiki("x"), markdown("x"), related("x"), wiki("a/x"), markdown("/a/x")):
        assert resolve(link, document(f"a/{path}"), source="a/s.md") == f"docs:a/{path}"


def test_twins_by_extension_are_told_apart_and_markdown_comes_first():
    twins = document("a.md"), document("a.txt")
    assert resolve(wiki("a.txt"), *twins) == "docs:a.txt"
    assert resolve(wiki("a.md"), *twins) == "docs:a.md"
    assert resolve(wiki("a"), *twins) == "docs:a.md"
    assert resolve(wiki("a.txt"), document("a.txt.md")) == "docs:a.txt.md"
    assert resolve(wiki("v1.2"), document("v1.2.md")) == "docs:v1.2.md"


def test_a_file_name_counts_when_it_is_unique():
    assert resolve(wiki("x"), document("deep/er/x.md")) == "docs:deep/er/x.md"
    assert resolve(markdown("x.md"), document("deep/er/x.md")) == "docs:deep/er/x.md"
    assert resolve(wiki("er/x"), document("deep/er/x.md"), document("x2/x.md")) == (
        "docs:deep/er/x.md"
    )
    assert resolve(wiki("other/x"), document("deep/er/x.md")) is None


def test_an_ambiguous_file_name_falls_through_to_title_and_alias():
    same = document("a/x.md"), document("b/x.md")
    assert resolve(wiki("x"), *same) is None
    assert resolve(wiki("x"), *same, document("t.md", title="x")) == "docs:t.md"
    assert resolve(wiki("x"), *same, document("t.md", aliases=["x"])) == "docs:t.md"
    titled = document("t.md", title="x"), document("u.md", title="x")
    assert resolve(wiki("x"), *same, *titled) is None
    assert resolve(wiki("x"), *same, *titled, document("v.md", aliases=["x", "x "])) == "docs:v.md"
    # What is ambiguous at home is not looked for abroad.
    assert resolve(wiki("x"), *same, document("x.md", tree="else")) is None


def test_titles_and_aliases_may_hold_anything():
    for name in ("TCP/IP", "C# and .NET", "What? [really]", "a.md notes", "100 %", "x://y", "."):
        titled, aliased = document("t.md", title=name), document("u.md", aliases=[f" {name} "])
        assert resolve(wiki(name), titled, aliased) == "docs:t.md"
        assert resolve(related(name), aliased) == "docs:u.md"


def test_exact_case_comes_first_and_any_case_counts_when_unique():
    upper, lower = document("Case.md"), document("case.md")
    assert resolve(wiki("Case"), upper, lower) == "docs:Case.md"
    assert resolve(wiki("case"), upper, lower) == "docs:case.md"
    assert resolve(wiki("CASE"), upper, lower) is None
    assert resolve(wiki("CASE"), upper) == "docs:Case.md"
    assert resolve(wiki("my TITLE"), document("t.md", title="My Title")) == "docs:t.md"


def test_unicode_forms_are_told_apart_and_otherwise_alike():
    composed, decomposed = document("caf\u00e9.md"), document("cafe\u0301.md")
    assert resolve(wiki("caf\u00e9"), composed, decomposed) == "docs:caf\u00e9.md"
    assert resolve(wiki("cafe\u0301"), composed, decomposed) == "docs:cafe\u0301.md"
    assert resolve(wiki("cafe\u0301"), composed) == "docs:caf\u00e9.md"
    assert resolve(wiki("STRASSE"), document("straße.md")) == "docs:straße.md"


def test_percent_signs_are_decoded_in_urls_only():
    spaced, literal = document("a b.md"), document("a%20b.md")
    assert resolve(markdown("a%20b.md"), spaced, literal) == "docs:a b.md"
    assert resolve(markdown("a%2520b.md"), spaced, literal) == "docs:a%20b.md"
    assert resolve(wiki("a%20b"), spaced, literal) == "docs:a%20b.md"
    assert resolve(markdown("%FF.md"), document("\udcff.md")) == "docs:\udcff.md"


def test_other_trees_come_after_the_links_own():
    home, abroad = document("x.md"), document("x.md", tree="else")
    assert resolve(wiki("x"), home, abroad) == "docs:x.md"
    assert resolve(wiki("x"), abroad) == "else:x.md"
    assert resolve(wiki("T"), abroad, document("h.md", title="T")) == "docs:h.md"
    assert resolve(markdown("a/x.md"), document("a/x.md", tree="else")) == "else:a/x.md"
    # The relative path means the link's own tree.
    assert resolve(markdown("../x.md"), abroad, source="a/s.md") is None
    twice = document("x.md", tree="else"), document("x.md", tree="more")
    assert resolve(wiki("x"), *twice) is None
    assert resolve(wiki("x"), *twice, document("t.md", title="x", tree="more")) == "more:t.md"


def test_an_empty_target_is_the_document_itself():
    assert resolve(wiki("", "Heading")) == "docs:source.md"
    assert resolve(markdown("", "heading")) == "docs:source.md"
    assert resolve(wiki("source")) == "docs:source.md"


@pytest.mark.parametrize(
    "target", ["https://example.org/x.md", "..", ".", "/", "a/..", "x/.", "%2e%2e/%2e%2e/x.md"]
)
def test_what_is_no_path_of_ours_leads_nowhere(target):
    documents = document("x.md"), document("a.md"), document("a/x.md")
    assert resolve(markdown(target), *documents, source="a/s.md") is None


@pytest.mark.parametrize("written", ["x", "[[x]]", "[[x|shown]]", "x.md", "![[x]]", " [[ x ]] "])
def test_related_entries_may_be_written_in_many_ways(written):
    assert resolve(related(written), document("deep/x.md")) == "docs:deep/x.md"


def test_a_folder_link_names_the_file_beside_the_folder():
    assert resolve(markdown("guide/"), document("guide.md")) == "docs:guide.md"


def test_match_keys():
    assert match_key("a/b/Setup.MD") == "setup"
    assert match_key("x.md.txt") == "x"
    assert match_key("v1.2") == "v1.2"
    assert match_key(".md") == ".md"
    assert match_key("/") == ""
    assert fold("ÉCOLE") == fold("e\u0301cole")


def anchor(name, *headings, syntax=LinkSyntax.WIKI):
    slugs = SlugCounter()
    link = Link(LinkKind.LINKS_TO, syntax, "", name, "", Span(0, 0, 1, 1))
    return Anchors((text, slugs.unique(text)) for text in headings).find(link)


@pytest.mark.parametrize("syntax", list(LinkSyntax))
def test_an_anchor_is_a_heading_or_a_slug(syntax):
    headings = ("Getting started", "A -- B", "What's new?", "Größe")
    for name, slug in (
        ("Getting started", "getting-started"),
        ("getting STARTED", "getting-started"),
        ("getting-started", "getting-started"),
        ("#Getting started", "getting-started"),
        ("Chapter#Getting started", "getting-started"),
        ("A -- B", "a----b"),
        ("a----b", "a----b"),
        ("a-b", "a----b"),
        ("getting_started", "getting-started"),
        ("Whats new", "whats-new"),
        ("GRÖSSE", "größe"),
        ("nothing", None),
        ("", None),
        ("^block", None),
        ("Getting started#^block", None),
    ):
        assert anchor(name, *headings, syntax=syntax) == slug, name


def test_the_first_of_equal_headings_counts_and_others_have_their_slugs():
    assert anchor("Notes", "Notes", "Notes") == "notes"
    assert anchor("notes-1", "Notes", "Notes") == "notes-1"


def test_a_heading_with_a_hash_in_it_is_found_whole():
    assert anchor("Learn C# here", "here", "Learn C# here") == "learn-c-here"


def test_anchors_of_urls_are_decoded_and_slugs_come_first():
    assert anchor("gr%C3%B6%C3%9Fe", "Größe", syntax=LinkSyntax.MARKDOWN) == "größe"
    headings = ("Intro", "Setup", "setup")
    assert anchor("setup", *headings, syntax=LinkSyntax.MARKDOWN) == "setup"
    assert anchor("setup", *headings, syntax=LinkSyntax.WIKI) == "setup-1"
