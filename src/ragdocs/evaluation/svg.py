"""A drawing as plain SVG."""

from xml.sax.saxutils import escape

from ragdocs.evaluation.drawing import Box, Drawing, Line, Shape


def to_svg(drawing: Drawing) -> str:
    width, height = drawing.width, drawing.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    )
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, ground, *map(_element, drawing.shapes), "</svg>"]) + "\n"


def _element(shape: Shape) -> str:
    if isinstance(shape, Box):
        title = f"<title>{escape(shape.title)}</title>" if shape.title else ""
        return (
            f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" '
            f'height="{shape.height:.1f}" fill="{shape.colour}">{title}</rect>'
        )
    if isinstance(shape, Line):
        return (
            f'<line x1="{shape.x1:.1f}" y1="{shape.y1:.1f}" x2="{shape.x2:.1f}" '
            f'y2="{shape.y2:.1f}" stroke="{shape.colour}"/>'
        )
    return (
        f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" text-anchor="{shape.anchor}">'
        f"{escape(shape.words)}</text>"
    )
