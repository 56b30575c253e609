"""How much alike results are."""

from itertools import combinations

import numpy as np

from tests.word_vectors import stored_vectors


def mean_cosine(engine, results):
    """Over all pairs; every result must be a leaf."""
    with engine.reader.snapshot() as snapshot:
        keys = {leaf.chunk.id: leaf.key for leaf in snapshot.leaves()}
    vectors = stored_vectors(engine.reader, engine.embedder)
    chosen = [vectors[keys[result.matched.id]] for result in results]
    return float(np.mean([one @ other for one, other in combinations(chosen, 2)]))
