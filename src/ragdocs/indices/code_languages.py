"""What a language is called: the names by which one and the same is written above a block."""

_NAMES = (
    ("python", "py", "python3", "py3"),
    ("javascript", "js", "node", "mjs", "cjs"),
    ("typescript", "ts"),
    ("shell", "sh", "bash", "zsh", "console", "shell-session"),
    ("c++", "cpp", "cxx", "cc"),
    ("c#", "cs", "csharp"),
    ("go", "golang"),
    ("rust", "rs"),
    ("ruby", "rb"),
    ("kotlin", "kt"),
    ("yaml", "yml"),
    ("markdown", "md"),
    ("powershell", "ps1", "pwsh"),
    ("docker", "dockerfile"),
    ("html", "htm"),
    ("latex", "tex"),
    ("haskell", "hs"),
    ("perl", "pl"),
    ("objective-c", "objc", "objectivec"),
    ("make", "makefile"),
)
_GROUPS = {name: group for group in _NAMES for name in group}


def language_names(language: str) -> tuple[str, ...]:
    """Every name of the language that is called so; an unknown one has only its own."""
    name = language.strip().lower()
    return _GROUPS.get(name, (name,))
