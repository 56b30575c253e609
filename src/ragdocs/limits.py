"""The limits on requests and answers, each defined once with its meaning.

`docs/limits.md` is generated from this table (`make docs`). Limits that only one
module uses, such as how many headings of a file are indexed, stay in that module.
"""

# A search

MAX_QUERY_CHARS = 2_000
"""Characters of one query."""
MAX_QUERIES = 5
"""Queries of one request."""
MAX_QUERIES_CHARS = 4_000
"""Characters of all queries of a request together."""
MAX_HYPOTHESIS_CHARS = 8_000
"""Characters of a hypothetical answer."""
MAX_TOP_N = 50
"""Passages of one answer (`top_n`)."""
MAX_FUZZY_DISTANCE = 2
"""Typos in one word."""
MAX_OFFSET = 1_000_000
"""Documents that a list by a filter skips."""

# What a search may cost: all queries of a request share these

MAX_SEARCHED_TERMS = 160
"""Different words that are searched for; if there are more, only the rarest are."""
MAX_CONDITIONS = 64
"""Words, phrases and filters joined by operators; a query with more is read as plain words."""
MAX_WISHES = 8
"""Quotations in plain questions that are looked up."""
MAX_GUESSES = 15
"""Unknown words that are compared with the words of the documents."""
QUERY_WINDOWS = 2
"""Windows of the embedding model for one query."""
HYPOTHESIS_WINDOWS = 8
"""Windows of the embedding model for a hypothetical answer."""

# A document, a list or a cursor

MAX_REFERENCE_CHARS = 13_000
"""Characters of a path, an id or an address: a path has up to 4,096 bytes, and encoding triples
them."""
MAX_CURSOR_CHARS = 30_000
"""Characters of a cursor."""
MAX_DOCUMENTS = 20
"""Documents that one call of `get_document` may name."""
MAX_LINE = 1_000_000_000
"""The highest line number that may be requested."""
DEFAULT_PAGE_ENTRIES = 100
"""Entries of a page, unless the request sets another number."""
MAX_PAGE_ENTRIES = 500
"""Entries of a page."""
DEFAULT_RELATED = 10
"""Related documents of each kind, unless the request sets another number."""
MAX_RELATED = 50
"""Related documents of each kind."""
MAX_FILTER_CHARS = 1_000
"""Characters of a tree's name, a tag, an author or a date."""
MAX_FILTER_ITEMS = 50
"""Tags or paths in one filter, and values in a filter text."""
MAX_FILTER_TEXT_CHARS = 2_000
"""Characters of a filter text (`status:active -tag:old`)."""

# Properties of a document

MAX_PROPERTIES = 200
"""Properties of a document that are kept."""
MAX_PROPERTY_CHARS = 1_000
"""Characters of a property's value that are kept."""
MAX_PROPERTY_VALUES = 1_000
"""Values that are kept of all properties of a document: a list has several."""
MAX_PROPERTY_VALUES_SHOWN = 10
"""Most frequent values that a list of properties shows for each."""

# Source files for `context`

DEFAULT_PASSAGES = 10
"""Passages for source files, unless the request sets another number."""
MAX_SOURCE_FILES = 50
"""Source files of one request, and files of one diff."""
MAX_SOURCE_CHARS = 1_000_000
"""Characters of one source file or of a diff."""
MAX_SOURCES_CHARS = 4_000_000
"""Characters of all source files and the diff together."""
MAX_READ_SOURCE_CHARS = 100_000
"""Characters (bytes of UTF-8) that are read of all files, or of a diff; the rest is ignored."""
MAX_SOURCE_TERMS = 3_000
"""Distinct terms that count."""

# An answer

DEFAULT_ANSWER_TOKENS = 5_000
"""Tokens of an answer, unless the request sets another number."""
MIN_ANSWER_TOKENS = 300
"""The smallest budget of an MCP tool; less would not fit a citation."""
MAX_ANSWER_TOKENS = 10_000
"""Tokens of any answer."""
LOW_CONFIDENCE = 0.3
"""Confidence below which a passage is not a certain answer."""
HIGH_CONFIDENCE = 0.7
"""Confidence from which a passage is shown in green on a terminal; others above the low one are
yellow."""
LAST_HOPE = 0.1
"""Confidence below which an MCP answer shows a passage's text only if nothing is better."""
MAX_LEFT_OUT = 10
"""Passages over budget that an MCP answer names, with the call that fetches them."""
MAX_MATCHES_SHOWN = 6
"""Places in one passage that an MCP answer marks as matching."""
MAX_LINKS_SHOWN = 50
"""Links of a document that its metadata lists."""
MAX_TAGS_SHOWN = 50
"""Tags of a document that a list shows."""
MAX_EXPLAINED_RESULTS = 10
"""Results that an MCP answer explains."""
MAX_EXPLAINED_TERMS = 20
"""Words of each kind that its explanation of a query lists."""
MAX_EXPLAINED_DROPS = 3
"""Dropped passages that its explanation of a stage lists."""
MAX_EXPLAINED_CHARS = 120
"""Characters that its explanation repeats of a query or a quotation."""
MAX_ERROR_CHARS = 2_000
"""Characters of an error message."""
MAX_PROBLEMS_NAMED = 5
"""Wrong arguments that one error message names."""

# An MCP call

MAX_COMPLETIONS = 100
"""Values that a completion offers; the protocol allows no more."""
MAX_MESSAGE_BYTES = 16 * 2**20
"""Bytes of one message; a longer one gets an error."""
MAX_UNANSWERED_REQUESTS = 128
"""Unanswered requests; while there are so many, no more are read."""
SEARCHES_AT_ONCE = 3
"""Searches that run at the same time; others wait."""
READS_AT_ONCE = 2
"""Other calls that run at the same time; further ones wait."""
