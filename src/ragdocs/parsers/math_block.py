"""`$$ … $$` as a block of its own, so that nothing inside it is a heading and it is kept whole.

Written for markdown-it's block rules. A formula that is never closed is ordinary text, and a
search for the end that failed once is not made again: a page of `$$` stays linear.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

MATH_FENCE = "$$"
_UNCLOSED = "math_unclosed"


def enable_math_blocks(parser: "MarkdownIt") -> None:
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math_block", _math_block, {"alt": interrupts})


def _math_block(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    position = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith(MATH_FENCE, position) or state.is_code_block(start):
        return False
    last = _closing_line(state, start, end, position + len(MATH_FENCE))
    if last is None:
        return False
    if not silent:
        state.line = last + 1
        token = state.push("math_block", "math", 0)
        token.block = True
        token.map = [start, last + 1]
    return True


def _closing_line(state: "StateBlock", start: int, end: int, content: int) -> int | None:
    if state.src[content : state.eMarks[start]].rstrip().endswith(MATH_FENCE):
        return start
    if start >= state.env.get(_UNCLOSED, end):
        return None
    for line in range(start + 1, end):
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(MATH_FENCE):
            return line
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return None
    state.env[_UNCLOSED] = start
    return None
