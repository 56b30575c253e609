"""Numbers, sizes and processes as a person reads them: in the same words, whoever says them."""


def number_of(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def size_text(count: int) -> str:
    """`12 bytes`, `1.2 MB`."""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def process_text(pid: int | None) -> str:
    """`process 12`, if its number is known."""
    return f"process {pid}" if pid else "another process"
