"""Indexes and searches the project's own documentation: on the command line, and over MCP.

Exits non-zero unless each answer cites the file that it should. Only what an ordinary install has
is used, and nothing of the user's settings.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

PROJECT = Path(__file__).resolve().parents[1]
INDEX = PROJECT / ".demo" / "index"
PLACE = ("--docs", "docs", "--index", str(INDEX.relative_to(PROJECT)))
QUESTIONS = (
    ("Are symbolic links, pipes and private keys indexed?", "trees.md"),
    ("What do readers and the writer do when a row of the store is damaged?", "store.md"),
    ("Is a hash sign inside a code fence a heading?", "parsing.md"),
)
ASKED, ANSWERED_BY = "How soon does the server end when its client is gone?", "mcp.md"
TABLES = '["benchmarks/", "cli.md", "configuration.md", "tools.md"]'
"""Skipped: figures and generated reference, which would be half of the text to embed."""
DEADLINE_SECONDS = 120


def environment() -> dict[str, str]:
    """Without the user's own settings, which are for other documents."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RAGDOCS_")}
    settings = {"XDG_CONFIG_HOME": str(PROJECT / ".demo"), "RAGDOCS_INDEXING__EXCLUDE": TABLES}
    return {**kept, **settings}


def ragdocs(*words: str) -> str:
    """Shows the command as typed, and returns what it prints."""
    typed = " ".join(f'"{word}"' if " " in word else word for word in words)
    print(f"\n$ ragdocs {typed}", flush=True)
    command = [sys.executable, "-m", "ragdocs", *words]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, encoding="utf-8"
    )
    print(done.stdout.rstrip())
    if done.returncode:
        sys.exit(f"The command ended with exit code {done.returncode}.")
    return done.stdout


def ask_by_command() -> None:
    for question, expected in QUESTIONS:
        answer = ragdocs("query", question, *PLACE, "-n", "1", "--output", "list")
        # The command line names the file from the working directory on.
        expect(f"docs/{expected}", answer.removeprefix("1. ").partition(":")[0])


def ask_by_client() -> None:
    print(f"\nNow an MCP client: it starts `ragdocs mcp {' '.join(PLACE)}`.", flush=True)
    found, read = anyio.run(session)
    best = found["results"][0] if found.get("results") else {"path": ""}
    expect(f"docs/{ANSWERED_BY}", f"docs/{best['path']}")
    print(f"  query_documents: {ASKED}")
    place = f"{best['path']}:{best['line_start']}-{best['line_end']}"
    print(f"    docs/{place}  confidence {best['confidence']:.2f}")
    expect(f"docs/{ANSWERED_BY}", f"docs/{read.get('path', '')}")
    print(f"  get_document: {read['id']}, lines {read['line_start']}-{read['line_end']}")
    print(f"    {' '.join(read['text'].split())[:150]}…")


async def session() -> tuple[dict[str, Any], dict[str, Any]]:
    """Starts the server as a process and talks to it with the SDK's client."""
    words = ["-m", "ragdocs", "mcp", *PLACE]
    server = StdioServerParameters(
        command=sys.executable, args=words, env=environment(), cwd=str(PROJECT)
    )
    start = time.monotonic()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with Client(stdio_client(server)) as client:
            about = client.server_info
            name = f"{about.name} {about.version}" if about else "a server without a name"
            print(f"  handshake: {name}, after {time.monotonic() - start:.1f} s")
            tools = (await client.list_tools()).tools
            print(f"  tools: {', '.join(tool.name for tool in tools)}")
            found = await _call(client, "query_documents", query=ASKED, top_n=1)
            best = found["results"][0]["id"] if found.get("results") else ""
            return found, await _call(client, "get_document", document=best)


async def _call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        print(f"  {tool} failed: {result.content}")
    return result.structured_content or {}


def expect(expected: str, cited: str) -> None:
    if cited != expected:
        sys.exit(f"\nThe answer cites {cited or 'nothing'}, not {expected}.")


def main() -> None:
    print("The project's own documentation (docs/, but for long tables) is indexed.", flush=True)
    ragdocs("update", *PLACE)
    ask_by_command()
    ask_by_client()
    print("\nTry it on your own notes: .venv/bin/ragdocs query QUESTION --docs FOLDER")
    print("The demo's index is in .demo/; `make clean` removes it.")


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        # Nothing is left half done: the index changes by whole transactions. The rest of the buffer
        # is lost.
        os._exit(130)
