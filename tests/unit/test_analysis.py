"""Text and queries become the same terms, and every term knows its characters."""

import sys
import unicodedata
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import (
    Analyzer,
    Token,
    analysis_fingerprint,
    code_analyzer,
    text_analyzer,
)
from ragdocs.indices.languages import marks, stop_words
from ragdocs.text import INVISIBLE

ENGLISH = text_analyzer(Stemmer.ENGLISH)

INFLECTIONS = {
    Stemmer.ARABIC: [("كتاب", "الكتاب"), ("مدرسة", "المدرسة"), ("معلم", "المعلمون")],
    Stemmer.DANISH: [("hus", "huset"), ("bil", "biler"), ("bog", "bogen")],
    Stemmer.DUTCH: [("boek", "boeken"), ("werk", "werken"), ("vraag", "vragen")],
    Stemmer.ENGLISH: [("handling", "handled"), ("connection", "connected"), ("search", "searches")],
    Stemmer.FINNISH: [("talo", "talossa"), ("kirja", "kirjat"), ("auto", "autolla")],
    Stemmer.FRENCH: [("maison", "maisons"), ("chercher", "cherchait"), ("national", "nationaux")],
    Stemmer.GERMAN: [("Haus", "Hauses"), ("Katze", "Katzen"), ("Straße", "STRASSEN")],
    Stemmer.GREEK: [("δρόμος", "δρόμου"), ("άνθρωπος", "άνθρωποι"), ("ΔΡΌΜΟΣ", "δρόμο")],
    Stemmer.HUNGARIAN: [("ház", "házak"), ("könyv", "könyvek"), ("asztal", "asztalon")],
    Stemmer.ITALIAN: [("casa", "case"), ("libro", "libri"), ("parlare", "parlava")],
    Stemmer.NORWEGIAN: [("hus", "huset"), ("bil", "bilene"), ("bok", "boken")],
    Stemmer.PORTUGUESE: [("casa", "casas"), ("livro", "livros"), ("procurar", "procurando")],
    Stemmer.ROMANIAN: [("casă", "case"), ("copil", "copilul"), ("profesor", "profesorii")],
    Stemmer.RUSSIAN: [("книга", "книги"), ("искать", "искал"), ("РАБОТА", "работы")],
    Stemmer.SPANISH: [("casa", "casas"), ("buscar", "buscando"), ("canción", "canciones")],
    Stemmer.SWEDISH: [("hus", "huset"), ("bil", "bilar"), ("bok", "boken")],
    Stemmer.TAMIL: [("வீடு", "வீடுகள்"), ("புத்தகம்", "புத்தகங்கள்")],
    Stemmer.TURKISH: [("kitap", "kitaplar"), ("okul", "okulda"), ("IŞIK", "ışıklar")],
}


def terms(text: str) -> list[str]:
    return ENGLISH.terms(text)


def query(text: str) -> list[str]:
    return [token.term for token in ENGLISH.query(text)]


def plain(text: str) -> list[str]:
    return ENGLISH.streams(text).plain


@pytest.mark.parametrize("language", Stemmer)
def test_inflections_share_a_stem(language):
    analyzer = text_analyzer(language)
    for one, other in INFLECTIONS[language]:
        assert analyzer.terms(one) == analyzer.terms(other), (one, other)
        assert len(analyzer.terms(one)) == 1


def test_languages_differ():
    assert text_analyzer(Stemmer.GERMAN).terms("Katzen") != ENGLISH.terms("Katzen")


def test_the_example_of_seed_004():
    assert terms("Error-Handling in Rust") == ["error", "handl", "in", "rust"]
    assert terms("handled") == terms("handling")


def test_tokens_over_forty_characters_are_dropped_but_keep_their_place():
    assert terms("x" * 40) == ["x" * 40]
    text = f"before {'x' * 41} after"
    assert [(t.term, t.position) for t in ENGLISH.tokens(text)] == [("befor", 0), ("after", 2)]


def test_parts_of_a_name_too_long_to_keep_are_kept():
    name = "test_that_a_rather_long_name_is_still_found_by_its_parts"
    assert name not in terms(name)
    assert "name" in terms(name)


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("CAFE\u0301", "café"),
        ("ＦＵＬＬ", "ｆｕｌｌ"),
        ("pass\u200bword", "password"),
        ("\u202epassword\u202c", "password"),
        ("soft\u00adware", "software"),
        ("\ufeffword", "word"),
        ("straße", "strass"),
        ("e" + "\u0301" * 3 + "x", "é\u0301\u0301x"),
    ],
)
def test_case_composition_and_invisible_characters_do_not_matter(written, folded):
    assert terms(written) == terms(folded)
    assert len(terms(written)) == 1


def test_marks_do_not_cut_words():
    assert len(text_analyzer(Stemmer.TAMIL).terms("புத்தகங்கள்")) == 1
    assert len(terms("שָׁלוֹם")) == 1
    assert len(terms("हिन्दी")) == 1


def test_turkish_finds_its_own_capitals_and_english_names():
    turkish = text_analyzer(Stemmer.TURKISH)
    assert turkish.terms("İSTANBUL") == turkish.terms("istanbul")
    assert turkish.terms("ISPARTA") == turkish.terms("ısparta")
    assert turkish.terms("API") == turkish.terms("api")


def test_identifiers_in_prose_give_their_parts():
    found = ENGLISH.tokens("Call getUserById now")
    assert found == [
        Token("call", 0, 4, 0),
        Token("getuserbyid", 5, 16, 1, is_whole=True),
        Token("get", 5, 8, 1),
        Token("user", 8, 12, 2),
        Token("by", 12, 14, 3),
        Token("id", 14, 16, 4),
        Token("now", 17, 20, 5),
    ]


def test_a_phrase_of_the_parts_lies_in_the_plain_terms():
    assert plain("Call getUserById now") == plain("call get user by id now")
    assert ENGLISH.streams("Call getUserById now").wholes == ["getuserbyid"]


def test_emphasis_is_no_part_of_a_word():
    assert terms("_really_ __bold__ *it*") == ["realli", "bold", "it"]


def test_names_with_marks_are_kept():
    assert terms("C++ C# F# g++ Notepad++") == ["c++", "c#", "f#", "g++", "notepad++"]
    assert terms("Modern C++17.") == ["modern", "c++", "17"]
    assert terms(".NET") == [".net", "net"]
    assert terms("Node.js") == ["node.js", "node", "js"]
    assert terms("Python 3.11.") == ["python", "3.11", "3", "11"]
    assert terms("C") == ["c"]
    assert terms("a++ b#c") == ["a", "b", "c"]


def test_plurals_of_abbreviations_are_one_word():
    assert terms("APIs IDs") == ["api", "id"]


def test_names_of_one_thing_are_not_cut():
    assert terms("JavaScript GitHub") == ["javascript", "github"]


def test_hashes_are_not_crumbled():
    assert terms("a3f9c2e1b7 h2") == ["a3f9c2e1b7", "h2"]


@pytest.mark.parametrize(
    ("text", "wholes", "singles"),
    [
        ("日本語", ["日本", "本語"], ["日", "本", "語"]),
        ("テスト", ["テス", "スト"], ["テ", "ス", "ト"]),
        ("猫", [], ["猫"]),
        ("한국어", ["한국", "국어"], ["한", "국", "어"]),
        ("ไทย", ["ไท", "ทย"], ["ไ", "ท", "ย"]),
        ("第3章", [], ["第", "3", "章"]),
        ("Rust言語", ["言語"], ["rust", "言", "語"]),
    ],
)
def test_scripts_without_spaces_give_pairs(text, wholes, singles):
    assert ENGLISH.streams(text).wholes == wholes
    assert plain(text) == singles


def test_a_query_looks_for_pairs_and_single_characters_only_alone():
    assert query("日本語") == ["日本", "本語"]
    assert query("猫") == ["猫"]
    assert set(query("猫")) <= set(terms("黒猫が好き"))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_decomposed_syllables_and_kana_give_the_same_pairs(form):
    text = unicodedata.normalize(form, "각나 がぎ ガギ")
    assert terms(text) == ["각나", "각", "나", "がぎ", "が", "ぎ", "ガギ", "ガ", "ギ"]


def test_a_query_drops_stop_words_and_the_text_keeps_them():
    assert query("How do I configure the server?") == ["configur", "server"]
    assert terms("How do I configure the server?")[:2] == ["how", "do"]
    assert query("don't panic") == ["panic"]


@pytest.mark.parametrize("text", ["to be or not to be", "The Who", "what is this"])
def test_a_query_of_stop_words_alone_keeps_them(text):
    assert query(text) == terms(text)


def test_a_query_keeps_the_place_of_what_it_drops():
    assert [t.position for t in ENGLISH.query("state of the art")] == [0, 3]


@pytest.mark.parametrize("language", Stemmer)
def test_every_language_has_stop_words_that_the_analysis_knows(language):
    analyzer = text_analyzer(language)
    assert len(stop_words(language)) >= 35
    for word in stop_words(language):
        assert analyzer.is_stop_word(word), word
        assert len(analyzer.streams(word).plain) == 1, word
    assert [t.term for t in analyzer.query(" ".join(stop_words(language)) + " ragdocs")] == (
        analyzer.terms("ragdocs")
    )


def test_the_known_marks_are_all_marks():
    known = {chr(point) for point in range(sys.maxunicode + 1) if _is_mark(point)}
    classes = marks().removeprefix(INVISIBLE)
    ranges = zip(classes[::3], classes[2::3], strict=True)
    assert {chr(p) for first, last in ranges for p in range(ord(first), ord(last) + 1)} == known


def _is_mark(point: int) -> bool:
    return unicodedata.category(chr(point))[0] == "M"


def test_the_fingerprint_changes_with_the_language():
    assert analysis_fingerprint(Stemmer.ENGLISH) != analysis_fingerprint(Stemmer.GERMAN)
    assert "english" in analysis_fingerprint(Stemmer.ENGLISH)


HOSTILE = {
    "nothing": "",
    "NUL and lone surrogates": "a\0b \ud800 c\udfffd",
    "marks": "e" + "\u0301\u0323" * 25_000,
    "marks alone": "\u0301" * 50_000,
    "marks on an ideograph": "語" + "\u0301\u0323" * 25_000 + "語",
    "one word": "x" * 1_000_000,
    "capitals": "X" * 1_000_000,
    "one run": "語" * 40_000,
    "a chain": "a." * 40_000,
    "colons": "a::" * 40_000,
    "underscores": "a" + "_" * 500_000 + "b",
    "snake": "a_" * 300_000,
    "dots": "." * 500_000,
    "pluses": "c+" * 40_000,
    "invisible": "\u200b" * 300_000 + "a" + "\u200b" * 300_000,
    "right to left": "\u202eשלום עולם مرحبا\u202c" * 20_000,
    "emoji": "👩‍👩‍👧‍👦🎉" * 20_000,
    "humps": "aB" * 300_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("analyzer", [ENGLISH, code_analyzer()], ids=["text", "code"])
def test_hostile_text_is_read_in_linear_time(name, analyzer):
    # A liveness deadline, not a speed: quadratic time would be minutes.
    before = process_time()
    for token in analyzer.tokens(HOSTILE[name]):
        token.term.encode()
        assert 0 < len(token.term) <= 80
    assert process_time() - before < 20


TEXTS = st.text(
    st.sampled_from("abUsS_.:+#C3 -'éÉß語カ각ไท\u0301\u0323\u200b\u00adİıσς") | st.characters(),
    max_size=40,
)


@settings(max_examples=250, deadline=None)
@given(TEXTS, st.sampled_from([ENGLISH, text_analyzer(Stemmer.TURKISH), code_analyzer()]))
def test_the_characters_of_a_token_give_its_term_again(text, analyzer):
    for token in analyzer.tokens(text):
        assert token.term in analyzer.terms(text[token.start : token.end])


@settings(max_examples=250, deadline=None)
@given(TEXTS, st.sampled_from([ENGLISH, code_analyzer()]))
def test_plain_tokens_stand_in_order_and_wholes_lie_over_them(text, analyzer):
    tokens = analyzer.tokens(text)
    singles = [token for token in tokens if not token.is_whole]
    for one, other in pairwise(singles):
        assert one.position < other.position
        assert one.start < one.end <= other.start < other.end
    for whole in (token for token in tokens if token.is_whole):
        inside = [t for t in singles if whole.start <= t.start and t.end <= whole.end]
        assert not inside or inside[0].position >= whole.position


@settings(max_examples=250, deadline=None)
@given(TEXTS)
def test_composed_and_decomposed_text_have_the_same_terms(text):
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert ENGLISH.terms(composed) == ENGLISH.terms(decomposed)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_all_views_of_a_text_agree(text):
    tokens = ENGLISH.tokens(text)
    streams = ENGLISH.streams(text)
    assert [token.term for token in tokens] == ENGLISH.terms(text)
    assert [token.term for token in tokens if token.is_whole] == streams.wholes
    assert [token.term for token in tokens if not token.is_whole] == streams.plain
    assert set(ENGLISH.query(text)) <= set(tokens)
    assert bool(ENGLISH.query(text)) == bool(tokens)


def test_remembering_words_changes_nothing():
    text = "getUserById handles errors, handled by Node.js 語語"
    fresh = Analyzer(Stemmer.ENGLISH)
    assert fresh.tokens(text) == fresh.tokens(text) == ENGLISH.tokens(text)


@given(
    st.text(alphabet="abcXY_.:é́中文 \n#+`-", max_size=80),
    st.lists(st.integers(0, 200), min_size=1, max_size=3),
)
def test_looking_for_single_terms_is_only_faster(text, picks):
    analyzer = text_analyzer(Stemmer("english"))
    known = [token.term for token in analyzer.tokens(text)] or ["x"]
    wanted = frozenset(known[pick % len(known)] for pick in picks)

    def places(tokens):
        return [(token.term, token.start, token.end, token.is_whole) for token in tokens]

    every = analyzer.tokens(text)
    found = analyzer.tokens_of(text, wanted)
    assert places(analyzer.scattered_tokens_of(text, wanted)) == places(found)
    assert [t for t in every if t.term in wanted] == [t for t in found if t.term in wanted]
