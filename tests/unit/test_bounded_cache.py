"""The cache with a bound in bytes: what it keeps, what it lets go, and what it really takes."""

import random
import threading
import tracemalloc

import pytest

from ragdocs.config.choices import Stemmer
from ragdocs.indices.analysis import Analyzer
from ragdocs.memory import BoundedCache, bytes_of


class Counted:
    """Makes a value of a key, and remembers of which."""

    def __init__(self, size=1000):
        self.made = []
        self._size = size

    def __call__(self, key):
        self.made.append(key)
        return f"{key}" * (self._size // len(str(key)))


def test_what_was_made_is_not_made_again():
    make = Counted()
    cache = BoundedCache(make, 1 << 20)
    assert [cache[7], cache[7], cache[8]] == [cache[7], cache[7], cache[8]]
    assert make.made == [7, 8]


def test_what_is_asked_for_again_and_again_stays():
    make = Counted()
    cache = BoundedCache(make, 100_000)
    for number in range(5000):
        assert cache["often"]
        assert cache[number]
    assert make.made.count("often") == 1


def test_an_unused_value_is_dropped():
    make = Counted()
    cache = BoundedCache(make, 100_000)
    assert cache["once"]
    for number in range(200):
        assert cache[number]
    assert cache["once"]
    assert make.made.count("once") == 2


def test_a_value_larger_than_the_room_is_made_each_time_and_pushes_nothing_out():
    make = Counted()
    cache = BoundedCache(make, 10_000)
    assert cache["small"]
    make._size = 50_000
    assert cache["huge"] == cache["huge"]
    assert cache["small"]
    assert make.made == ["small", "huge", "huge"]
    assert cache.bytes <= 10_000


def test_a_large_value_that_is_allowed_is_kept_until_others_come():
    make = Counted()
    cache = BoundedCache(make, 10_000, largest=60_000)
    make._size = 50_000
    assert cache["huge"] == cache["huge"]
    make._size = 1000
    for number in range(30):
        assert cache[number]
    assert make.made.count("huge") == 1
    assert cache.bytes <= 10_000


def test_what_cannot_be_made_is_tried_again():
    def fail(key):
        raise ValueError(key)

    cache = BoundedCache(fail, 1000)
    for _ in range(2):
        with pytest.raises(ValueError, match="x"):
            cache["x"]


def test_forget_empties_the_cache():
    make = Counted()
    cache = BoundedCache(make, 10_000)
    assert cache["x"]
    cache.forget()
    assert (cache.bytes, len(cache)) == (0, 0)
    assert cache["x"]
    assert make.made == ["x", "x"]


def test_many_threads_get_the_right_values_within_the_bound():
    cache = BoundedCache(lambda key: f"{key}" * 100, 200_000)
    wrong = []

    def ask(seed):
        rng = random.Random(seed)
        for _ in range(5_000):
            key = rng.randrange(3000)
            if cache[key] != f"{key}" * 100:
                wrong.append(key)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.bytes <= 200_000


def _words(count):
    rng = random.Random("words")
    letters = "abcdefghijklmnopqrstuvwxyzäöüабвгде漢字仮名"
    for _ in range(count):
        yield "".join(rng.choices(letters, k=rng.randint(1, 60)))


@pytest.mark.parametrize("kept", ["_word", "_terms_of"])
def test_the_analysis_of_any_number_of_words_stays_within_its_bytes(kept):
    """As the allocator counts them, not as the cache does."""
    analyzer = Analyzer(Stemmer.ENGLISH)
    cache = getattr(analyzer, kept)
    most, cache._room = 400_000, 200_000
    analyzer._word = cache if kept == "_word" else BoundedCache(analyzer._analyse_word, 2000)
    words = list(_words(3000))
    tracemalloc.start()
    try:
        for word in words:
            assert cache[word] is not None
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) < 2000
    assert most / 4 < held <= 1.3 * most


def test_the_size_of_a_value_counts_all_it_holds():
    text = "x" * 10_000
    assert bytes_of(text) > 10_000
    assert bytes_of((text, frozenset({text + "y"}), [text])) > 30_000
