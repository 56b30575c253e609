"""Documents that are linked with the best ones are raised with them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from ragdocs.models import DocId

# How many of the best documents say which communities the query is about.
LEADERS = 3


def raised_documents(ranked: Sequence[DocId], communities: Mapping[DocId, int]) -> frozenset[DocId]:
    """Those that share a community with one of the first, best first given.

    The leaders themselves are among them, or a follower would pass its leader by the boost alone;
    a leader that has no follower here has nothing to share.
    """
    documents = list(dict.fromkeys(ranked))
    members = Counter(communities[doc_id] for doc_id in documents if doc_id in communities)
    leading = {communities.get(doc_id) for doc_id in documents[:LEADERS]}
    return frozenset(
        doc_id
        for doc_id in documents
        if (own := communities.get(doc_id)) is not None and own in leading and members[own] > 1
    )
