"""The real program with a tiny real model: `python -m tests.faults.program COMMAND ...`."""

from ragdocs.app import Assembly
from ragdocs.cli.main import main as program
from ragdocs.config.resolved import Config
from ragdocs.embedding.base import Embedder
from tests import endings
from tests.managed_index import CountingEmbedder


def main() -> None:
    endings.by_itself()
    usual = Assembly.__init__

    def made(self: Assembly, config: Config, embedder: Embedder | None = None) -> None:
        usual(self, config, embedder or CountingEmbedder())

    Assembly.__init__ = made
    program()


if __name__ == "__main__":
    main()
