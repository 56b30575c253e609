"""Writes docs/tools.md from the schemas of the MCP tools.

python scripts/generate_tool_docs.py
"""

from pathlib import Path

from ragdocs.mcp_server.tools.reference import reference_page

if __name__ == "__main__":
    page = Path(__file__).resolve().parent.parent / "docs" / "tools.md"
    page.write_text(reference_page(), encoding="utf-8")
