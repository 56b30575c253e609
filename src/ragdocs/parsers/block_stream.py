"""markdown-it's block parser as a stream: each token is handed on and not kept.

A token takes half a kilobyte and a line may give eight of them, so that the list of a 10 MB table
would fill gigabytes. The rules of markdown-it fill in a token after it was pushed, and before they
push the next one; only a table learns its last line at its end.
"""

from collections.abc import Callable, Container
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token


class BlockStream(StateBlock):
    """Parses a text, which has only LF line ends and no NUL, block by block."""

    def __init__(
        self,
        text: str,
        parser: MarkdownIt,
        env: dict[str, Any],
        wanted: Container[str],
        visit: Callable[[Token], None],
    ) -> None:
        super().__init__(text, parser, env, [])
        self._wanted = wanted
        self._visit = visit
        self._pending: Token | None = None
        self._ignored = Token("", "", 0)

    def run(self) -> None:
        self.md.block.tokenize(self, self.line, self.lineMax)
        self._hand_on()

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if self._pending is not None:
            self._hand_on()
        if nesting < 0:
            self.level -= 1
        level = self.level
        if nesting > 0:
            self.level += 1
        if ttype not in self._wanted:
            return self._ignored
        token = self._pending = Token(ttype, tag, nesting, level=level, block=True)
        return token

    def _hand_on(self) -> None:
        if self._pending is not None:
            self._visit(self._pending)
            self._pending = None
