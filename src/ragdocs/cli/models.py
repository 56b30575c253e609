"""`models`: the models in use and available, for embedding and reranking; and `models fetch`."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.cli.failures import NOTHING_FOUND
from ragdocs.cli.main import config_option, json_option, warn_of_ignored
from ragdocs.cli.status import short
from ragdocs.config.choices import EmbeddingProvider
from ragdocs.text import escaped, json_text, size_text

if TYPE_CHECKING:
    from ragdocs.cli.model_list import Builtin, Extra, Models, RerankerModel


@click.group("models", invoke_without_command=True)
@config_option
@json_option
@click.pass_context
def models(context: click.Context, config_file: Path | None, as_json: bool) -> None:
    """List the models that can be used now, and why others cannot; or fetch one.

    Nothing is loaded or fetched; `ragdocs doctor` tries the model in use. Exits with 0 when that
    model can be used, 1 when it cannot.

    \b
    Example:
      ragdocs models
    """
    if context.invoked_subcommand:
        return
    from ragdocs.cli.model_list import list_models
    from ragdocs.config.loading import load_config

    config = load_config(config_file)
    warn_of_ignored(config)
    found = list_models(config)
    if as_json:
        click.echo(json_text(found))
    else:
        for line in _lines(found):
            click.echo(escaped(line))
    context.exit(NOTHING_FOUND if found.embedding.problem else 0)


@models.command("fetch")
@click.argument("name")
@click.option(
    "--for",
    "provider",
    type=click.Choice([EmbeddingProvider.ONNX.value, EmbeddingProvider.HUGGINGFACE.value]),
    help="The provider to fetch it for; the one in the configuration, if it is one of these, or "
    "else onnx where the extra `huggingface` is not installed.",
)
@config_option
def fetch(name: str, provider: str | None, config_file: Path | None) -> None:
    """Fetch a model from the Hugging Face Hub, with progress.

    For the provider `onnx`: an embedding model's ONNX export, a quantised file if there is one.
    For `huggingface`, which is an extra: an embedding model or a cross-encoder for torch.

    Files that are already there are not fetched again, and an interrupted download continues with
    the missing ones; an incomplete model is not used. Afterwards the model needs no network. NAME
    is like BAAI/bge-small-en-v1.5.

    \b
    Example:
      ragdocs models fetch intfloat/multilingual-e5-small
    """
    from ragdocs.config.loading import load_config
    from ragdocs.embedding.download import fetch_export, fetch_model
    from ragdocs.embedding.hub import find_model, has_torch_extra, read_export

    config = load_config(config_file)
    warn_of_ignored(config)
    cache = config.embedding.cache_folder
    chosen = provider or config.embedding.provider.value
    for_torch = chosen == EmbeddingProvider.HUGGINGFACE or (
        chosen != EmbeddingProvider.ONNX and has_torch_extra()
    )
    place = Path(os.path.abspath(os.path.expanduser(name)))
    try:
        if name.startswith(("/", "./", "../", "~")):
            folder = find_model(str(place), cache) if for_torch else place
        else:
            get = fetch_model if for_torch else fetch_export
            folder = get(name, cache, _print_file)
        if not for_torch:
            read_export(folder, config.embedding)
    except KeyboardInterrupt:
        click.echo(
            "\nInterrupted: this download is not used. The files that have arrived are kept; the "
            "same command fetches the others.",
            err=True,
        )
        raise
    click.echo(escaped(f"{name} is in {folder}"))
    if not for_torch and config.embedding.provider is not EmbeddingProvider.ONNX:
        click.echo(escaped(f'To use it: [embedding] provider = "onnx", model = "{name}"'))


def _print_file(name: str, number: int, count: int) -> None:
    click.echo(escaped(f"file {number} of {count}: {name}"), err=True)


def _lines(found: "Models") -> Iterator[str]:
    used = found.embedding
    yield f"In use: {used.model} ({used.provider})"
    if used.problem and used.problem != found.builtin.problem:
        yield f"  cannot be used: {used.problem}"
    yield from _builtin(found.builtin)
    for extra in found.extras:
        yield _extra(extra)
    if found.fetched:
        yield f"Fetched: {', '.join(found.fetched)}"
    yield from _reranker(found.cross_encoder)


def _builtin(model: "Builtin") -> Iterator[str]:
    yield f"Built in: {model.name}, {model.dimension} dimensions"
    if model.problem:
        yield "  cannot be used: " + model.problem.replace("\n", "\n  ")
    else:
        yield f"  {size_text(model.bytes)} from {model.place}, verified by sha256"
        yield f"  {short(model.folder)}"
    for note in model.notes:
        yield f"  {note}"


def _extra(extra: "Extra") -> str:
    if extra.installed:
        there = ", ".join(f"{package} {number}" for package, number in extra.packages.items())
        return f"Extra {extra.name}: installed ({there})"
    missing = ", ".join(package for package, number in extra.packages.items() if number is None)
    return f"Extra {extra.name}: not installed (needs {missing})"


def _reranker(model: "RerankerModel") -> Iterator[str]:
    state = "on" if model.enabled else "off"
    yield f"Re-ranking: {state} (search.rerank_enabled), by {short(model.model)}"
    if model.problem:
        yield "  cannot be used: " + model.problem.replace("\n", "\n  ")
    else:
        yield "  its folder is complete"
