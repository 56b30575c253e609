"""What commands that read have in common: where, in step or not, and in which form."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import click

from ragdocs.cli.here import refuse_everything
from ragdocs.cli.options import json_option
from ragdocs.cli.place import Place, place_options

if TYPE_CHECKING:
    from ragdocs.app import App

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Reading:
    """The options of every command that reads the index."""

    place: Place
    as_json: bool
    no_update: bool

    @contextmanager
    def app(self) -> "Generator[App]":
        """Its index is built where there is none, and brought in step where no server does that.

        Raises click's Exit when that was interrupted.
        """
        from ragdocs.app import App
        from ragdocs.cli.freshness import bring_in_step

        config = self.place.config()
        if not self.no_update:
            refuse_everything(config)
            interrupted = bring_in_step(config)
            if interrupted is not None:
                raise click.exceptions.Exit(interrupted)
        with App(config) as app:
            yield app


def reading_options(command: Callable[..., _T]) -> Callable[..., _T]:
    """Adds them; the command is given them as its argument `reading`."""

    @json_option
    @click.option("--no-update", is_flag=True, help="Answer from the index as it is.")
    @place_options
    @wraps(command)
    def with_reading(
        *arguments: object, place: Place, as_json: bool, no_update: bool, **options: object
    ) -> _T:
        return command(*arguments, reading=Reading(place, as_json, no_update), **options)

    return with_reading
