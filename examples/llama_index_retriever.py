"""LlamaIndex over a folder of Markdown: our search as its retriever, our chunker as its parser.

    pip install 'mcp-markdown-ragdocs[llama-index]'
    python examples/llama_index_retriever.py docs "how is the index kept up to date?"

No service and no key: the built-in model embeds, and no language model is asked.
"""

import argparse
import sys
from pathlib import Path

from llama_index.core import Document

from ragdocs import open_index
from ragdocs.integrations.llama_index import RagdocsNodeParser, RagdocsRetriever


def main() -> None:
    """Answers a question with passages, then shows how the first document is cut."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    options.add_argument("folder", type=Path)
    options.add_argument("question")
    given = options.parse_args()
    say = sys.stdout.write

    with open_index(given.folder) as index:
        retriever = RagdocsRetriever(index, top_n=3)
        found = retriever.retrieve(given.question)
    for one in found:
        say(f"{one.score:.2f}  {one.node.metadata['citation']}\n")
        say(f"      {one.node.metadata['heading_path']}\n")
    if not found:
        return

    best = given.folder / found[0].node.metadata["path"]
    document = Document(text=best.read_text(encoding="utf-8"), metadata={"file_path": best.name})
    passages = RagdocsNodeParser().get_nodes_from_documents([document])
    say(f"\n{best.name}, passages: {len(passages)}\n")
    for node in passages[:5]:
        lines = f"{node.metadata['line_start']}-{node.metadata['line_end']}"
        say(f"      {lines:>9}  {node.metadata['heading_path']}\n")


if __name__ == "__main__":
    main()
