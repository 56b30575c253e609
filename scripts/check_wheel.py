"""Builds sdist and wheel, checks both, installs the wheel into an empty environment and runs it.

What users get is the wheel, not this folder: a file left out of it, a dependency that is not
declared, or torch creeping into the base install shows here and nowhere else. With a folder as
argument, what was checked is kept there, ready to be published.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
IN_SDIST = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "constraints.txt")
UNWANTED = ("torch", "llama_index", "sentence_transformers", "transformers", "pytest")
PROBE = f"""
import importlib.util, sys
found = [name for name in {UNWANTED} if importlib.util.find_spec(name)]
sys.exit(f"in the base install, but should not be: {{found}}" if found else 0)
"""
EMBED = """
from ragdocs.embedding.builtin import BuiltinEmbedder
embedder = BuiltinEmbedder()
vectors = embedder.embed_documents(["a cat sat on the mat", "der Vertrag wird gekündigt"])
close, far = vectors @ embedder.embed_query("where is the cat?")
assert vectors.shape == (2, embedder.dimension) and close > far, (close, far)
print(f"{embedder.name}: {close:.2f} > {far:.2f}")
"""
SHOWN_MEGABYTES = 5
SIZES = f"""
from importlib.metadata import distributions

def megabytes(package):
    places = [file.locate() for file in package.files or ()]
    return sum(place.stat().st_size for place in places if place.is_file()) / 1e6

there = {{one.name: megabytes(one) for one in distributions()}}
needed = {{name: size for name, size in there.items() if name not in ("pip", "setuptools")}}
print(f"installed with everything it needs: {{sum(needed.values()):.0f}} MB, "
      f"{{len(needed)}} packages")
for name, size in sorted(needed.items(), key=lambda each: -each[1]):
    if size >= {SHOWN_MEGABYTES}:
        print(f"{{size:7.0f}} MB  {{name}}")
rest = sum(size for size in needed.values() if size < {SHOWN_MEGABYTES})
print(f"{{rest:7.0f}} MB  all others")
"""


def run(*command: str | Path, cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def build(into: Path, env: dict[str, str]) -> Path:
    # The wheel is built from the sdist: what is missing there is missing here.
    run(sys.executable, "-m", "build", "--outdir", into, PROJECT, cwd=PROJECT, env=env)
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=PROJECT, env=env)
    run(sys.executable, "-m", "check_wheel_contents", wheel, cwd=PROJECT, env=env)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in IN_SDIST if name not in inside]
    if missing:
        sys.exit(f"{missing} are not in {sdist.name}")
    print(sdist.name, f"{sdist.stat().st_size / 1e3:.0f} kB")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("ragdocs/py.typed", "ragdocs/cli/main.py"):
        if needed not in names:
            sys.exit(f"{needed} is not in {wheel.name}")
    strays = [name for name in names if not name.startswith(("ragdocs/", "mcp_markdown_ragdocs-"))]
    if strays:
        sys.exit(f"{wheel.name} also has {strays}")
    return wheel


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": scratch,
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "LANG": "C.UTF-8",
        }
        env |= {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
        wheel = build(work / "dist", env)
        home = work / "venv"
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        constraints = PROJECT / "constraints.txt"
        run(python, "-m", "pip", "install", "-q", "-c", constraints, wheel, cwd=work, env=env)
        note = work / "note.md"
        note.write_text("# Hello\n\nA first note.\n", encoding="utf-8")
        print(wheel.name, f"{wheel.stat().st_size / 1e3:.0f} kB")
        for command in ("ragdocs", "mcp-markdown-ragdocs"):
            print(run(home / "bin" / command, "--version", cwd=work, env=env))
        shown = run(home / "bin" / "ragdocs", "inspect", "doc", "note.md", cwd=work, env=env)
        if "#hello" not in shown:
            sys.exit(f"inspect doc shows no section:\n{shown}")
        run(python, "-c", PROBE, cwd=work, env=env)
        print(run(python, "-c", EMBED, cwd=work, env=env))
        print(run(python, "-c", SIZES, cwd=work, env=env))
        if len(sys.argv) > 1:
            shutil.copytree(work / "dist", sys.argv[1], dirs_exist_ok=True)
            print(f"kept in {sys.argv[1]}")


if __name__ == "__main__":
    main()
