"""[embedding]: what turns text into vectors."""

from typing import Annotated, Any

from ragdocs.config.choices import EmbeddingProvider
from ragdocs.config.values import AUTO, Device, Lax, NameOrFolder, OptionalFolder, Section, setting


class EmbeddingConfig(Section):
    """What turns text into vectors."""

    provider: Annotated[EmbeddingProvider, Lax] = setting(
        EmbeddingProvider.BUILTIN, "Built in, or one of the extras; http is a local endpoint."
    )
    model: NameOrFolder = setting(
        "all-MiniLM-L6-v2",
        "The model: a name, or a folder (beginning with /, ./, ../ or ~).",
        allowed="a name or a path",
    )
    query_prefix: str = setting(
        AUTO, 'Put before a query; "auto" is what the model is known to need, "" is nothing.'
    )
    passage_prefix: str = setting(AUTO, "Put before a passage; as query_prefix.")
    batch_size: int = setting(32, "Texts embedded at once.", within=(1, 1024))
    threads: int = setting(0, "Processor threads for bulk work; 0 is automatic.", within=(0, 64))
    device: Device = setting(
        AUTO,
        "Where the model runs; the built-in one always uses the processor.",
        allowed='"auto", "cpu", "mps", "cuda" or "cuda:N"',
    )
    cache_folder: OptionalFolder = setting(
        None, 'Where prepared and fetched models are kept; "" is the user\'s cache.'
    )
    local_files_only: bool = setting(
        False, "Never fetch a model; the built-in one is never fetched."
    )
    url: str = setting(
        "", 'For provider = "http": the endpoint, as "http://127.0.0.1:11434/v1"; none by default.'
    )
    allow_remote: bool = setting(
        False, "Let `url` lead beyond this machine: passages and queries are then sent there."
    )
    timeout_seconds: float = setting(
        20.0, "How long the endpoint may take for one batch.", within=(0.1, 600)
    )
    retries: int = setting(
        2, "How often a batch is sent again when the endpoint fails.", within=(0, 10)
    )
    class_name: str = setting(
        "",
        'For provider = "llama-index": the embedding\'s class, as "module:Class".',
        aliases=("embedding.class",),
    )
    arguments: dict[str, Any] = setting(
        {}, "What that class is made with, by name.", allowed="a table"
    )
