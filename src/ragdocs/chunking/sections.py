"""The outline of a document as ranges: every heading a section, nested by level."""

from dataclasses import dataclass, field

from ragdocs.models import Document, Heading


@dataclass(slots=True)
class Section:
    """A heading and all that stands below it, as characters [start, end) of the text.

    The root stands for the whole body and has no heading.
    """

    heading: Heading | None
    start: int
    end: int
    children: list["Section"] = field(default_factory=list["Section"])

    @property
    def level(self) -> int:
        return 0 if self.heading is None else self.heading.level

    @property
    def size(self) -> int:
        return self.end - self.start


def outline(document: Document) -> Section:
    """The sections of a document below one root. A skipped level simply nests."""
    end = len(document.source.text)
    root = Section(None, document.body_start, end)
    open_sections = [root]
    for heading in document.headings:
        start = document.source.line_starts[heading.span.line_start - 1]
        _close(open_sections, heading.level, start)
        section = Section(heading, start, end)
        open_sections[-1].children.append(section)
        open_sections.append(section)
    return root


def _close(open_sections: list[Section], level: int, end: int) -> None:
    while (last := open_sections[-1]).heading is not None and last.heading.level >= level:
        last.end = end
        open_sections.pop()
