"""Before a question is answered: the index is built where there is none, and brought in step where
no server does that.
"""

from contextlib import closing
from typing import TYPE_CHECKING

import click

from ragdocs.cli.output import shown as safe
from ragdocs.errors import (
    IndexCorrupt,
    IndexFolderForeign,
    IndexIncompatible,
    IndexLocked,
    IndexMissing,
    IndexStoreError,
    OtherSettings,
)

if TYPE_CHECKING:
    from ragdocs.config.resolved import Config

WAIT_SECONDS = 2.0
"""Another program that writes brings it in step as well: the answer need not wait for it."""


def bring_in_step(config: "Config", *, quiet: bool = False) -> int | None:
    """The exit status when it was interrupted, otherwise None.

    Raises IndexStoreError when the index cannot be written.
    """
    from ragdocs.assembly import index_directory
    from ragdocs.cli.index_run import Orders, run
    from ragdocs.cli.progress import display
    from ragdocs.indexing.lock import is_looked_after
    from ragdocs.lifecycle import Ending

    if is_looked_after(index_directory(config)):
        return None
    orders = Orders(rebuild=False, wait=WAIT_SECONDS)
    with Ending(watch_parent=False) as ending:
        with closing(display(quiet=quiet)) as shown:
            ending.before_force(shown.close)
            try:
                done = run(config, orders, ending, shown)
            except (IndexLocked, OtherSettings):
                return None  # the answer says how the index is
            except (IndexCorrupt, IndexFolderForeign, IndexIncompatible, IndexMissing):
                raise
            except IndexStoreError as error:
                click.echo(f"note: answering from the index as it is: {error}", err=True)
                return None
        if ending.reason:
            click.echo("Stopped. What was indexed is kept; the next run continues.", err=True)
            return ending.exit_code
    for kept in done.outcome.kept:
        click.echo(
            f"note: {safe(kept.tree)} {kept.reason}; showing its last indexed state", err=True
        )
    if done.vectors.lacking:
        click.echo(f"note: searching by words only: {done.vectors.lacking}", err=True)
    return None
