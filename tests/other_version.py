"""The program as another version of it would be: with a store of another schema, or other tables.

`python -m tests.other_version schema|tables WORDS...` is `ragdocs WORDS...`; with `served` as the
first word it is `python -m tests.served`.
"""

import sys

from ragdocs.indices import analysis
from ragdocs.store import schema


def become(kind: str) -> None:
    """Before any other module has read the number."""
    if kind == "schema":
        schema.SCHEMA_VERSION += 1
    else:
        analysis.ANALYSIS_VERSION = "another"


if __name__ == "__main__":
    become(sys.argv[1])
    if sys.argv[2] == "served":
        from tests import served

        served.main(*sys.argv[3:])
    else:
        from ragdocs.cli.main import main

        main(sys.argv[2:], prog_name="ragdocs")
