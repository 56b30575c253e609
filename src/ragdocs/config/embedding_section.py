"""[embedding]: what turns text into vectors."""

from collections.abc import Iterator
from typing import Annotated, Any

from ragdocs.config.choices import EmbeddingProvider, Pooling
from ragdocs.config.values import (
    AUTO,
    Authority,
    Device,
    Disagreement,
    Lax,
    ModelFile,
    NameOrFolder,
    OptionalFolder,
    Prefix,
    Section,
    setting,
)


class EmbeddingConfig(Section):
    """What turns text into vectors."""

    provider: Annotated[EmbeddingProvider, Lax] = setting(
        EmbeddingProvider.BUILTIN,
        "Built in, an ONNX export, or one of the extras; http is a local endpoint.",
        authority=Authority("chooses the program that is given the text of your documents"),
    )
    model: NameOrFolder = setting(
        "all-MiniLM-L6-v2",
        "The model: a name, or a folder (beginning with /, ./, ../ or ~).",
        allowed="a name or a path",
        authority=Authority("names a model to fetch or load", is_loaded=True),
    )
    model_file: ModelFile = setting(
        AUTO,
        'For provider = "onnx": the file to load, as "onnx/model.onnx"; "auto" is a quantised one, '
        "else the full one.",
        allowed='"auto" or an .onnx file of the folder',
        authority=Authority("chooses the file of a model that is loaded"),
    )
    pooling: Annotated[Pooling, Lax] = setting(
        Pooling.AUTO,
        'For provider = "onnx": how the vectors of a text\'s tokens become one; "auto" is what the '
        "model's files say.",
    )
    query_prefix: Prefix = setting(
        AUTO, 'Put before a query; "auto" is what the model is known to need, "" is nothing.'
    )
    passage_prefix: Prefix = setting(AUTO, "Put before a passage; as query_prefix.")
    batch_size: int = setting(32, "Texts embedded at once.", within=(1, 1024))
    threads: int = setting(0, "Processor threads for bulk work; 0 is automatic.", within=(0, 64))
    device: Device = setting(
        AUTO,
        "Where the model runs; the built-in one always uses the processor.",
        allowed='"auto", "cpu", "mps", "cuda" or "cuda:N"',
    )
    cache_folder: OptionalFolder = setting(
        None,
        'Where prepared and fetched models are kept; "" is the user\'s cache.',
        authority=Authority("names a folder that models are loaded from", is_loaded=True),
    )
    local_files_only: bool = setting(
        False,
        "Never fetch a model; the built-in one is never fetched.",
        authority=Authority("decides whether models are fetched over the network"),
    )
    url: str = setting(
        "",
        'For provider = "http": the endpoint, as "http://127.0.0.1:11434/v1"; none by default.',
        authority=Authority("is an address to which passages and queries are sent"),
    )
    allow_remote: bool = setting(
        False,
        "Let `url` lead beyond this machine: passages and queries are then sent there.",
        authority=Authority("lets passages and queries leave this machine"),
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
        authority=Authority("names Python code to import and run", is_loaded=True),
    )
    arguments: dict[str, Any] = setting(
        {},
        "What that class is made with, by name.",
        allowed="a table",
        authority=Authority("is given to that code", is_loaded=True),
    )

    def disagreements(self) -> Iterator[Disagreement]:
        if self.provider is EmbeddingProvider.LLAMA_INDEX and not self.class_name:
            yield Disagreement("the embedding's class is missing", ("class_name", "provider"))
