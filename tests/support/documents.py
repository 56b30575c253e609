"""Texts that tests read, and documents and chunks made of them.

The documentation of an invented product is in tests/fixtures, with texts on other subjects. Here
are also questions in six languages, with one page for each language.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ragdocs.chunking.chunker import ChunkSizes, chunk_document
from ragdocs.chunking.splitting import Limits
from ragdocs.models import Chunk, Document, TreeName
from ragdocs.parsers.markdown import Origin, parse_document

SEED_SIZES = ChunkSizes(leaf=Limits(250, 1000), small_document=1200, overlap=100)


def parse(
    text: str | bytes, path: str = "note.md", mtime_ns: int = 0, tree: str = "docs"
) -> Document:
    data = text.encode() if isinstance(text, str) else text
    return parse_document(data, Origin(TreeName(tree), path, mtime_ns))


def chunk(text: str | bytes, sizes: ChunkSizes = SEED_SIZES, path: str = "note.md") -> list[Chunk]:
    return list(chunk_document(parse(text, path), sizes))


def leaves(chunks: list[Chunk]) -> list[Chunk]:
    return [node for node in chunks if node.text is not None]


FIXTURES = Path(__file__).parents[1] / "fixtures"


def markdown(folder: str) -> dict[str, str]:
    """The text of each file, by its path below the folder."""
    root = FIXTURES / folder
    files = sorted(root.rglob("*.md"))
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}


def documentation() -> dict[str, str]:
    return markdown("markdown_docs") | markdown("code_samples")


def distractors() -> dict[str, str]:
    return {f"other/{path}": text for path, text in markdown("distractors").items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a query must find: a document, or `path#slug` for one section of it."""

    kind: str
    query: str
    place: str
    within: int


def expected(kind: str) -> list[Expected]:
    """The labelled queries of one kind, from `expected_results/queries.toml`."""
    path = FIXTURES / "expected_results" / "queries.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["query"]
    chosen = [Expected(**table) for table in tables if table["kind"] == kind]
    if not chosen:
        raise LookupError(f"no query of the kind {kind}")
    return chosen


def rank_of(place, results):
    """Counts from 1. A section also counts as found by one of its parts or in a larger passage."""
    for rank, result in enumerate(results, start=1):
        ids = [result.id, *(part.id for part in result.parts)]
        names = {re.sub(r"~\d+$", "", chunk_id.removeprefix("docs:")) for chunk_id in ids}
        if place == result.path or place in names:
            return rank
    return None


ROTA = """# Kitchen rota

Whoever is on duty empties the dishwasher before nine, wipes the table after lunch and waters the
basil on Friday. Milk is bought on Monday from the jar on the shelf. Cups that stand in the sink for
more than a day are put in the cupboard of shame, from which their owners may redeem them with cake.
Swap your week with somebody if you are away, and write it on the sheet beside the door.
"""
_CHANGES = (
    ("nine", "ten"),
    ("Friday", "Thursday"),
    ("basil", "parsley"),
    ("Milk", "Coffee"),
    ("cake", "biscuits"),
    ("more than a day", "two days or more"),
    ("Swap your week", "Exchange your week"),
    (" beside the door", ""),
    ("# Kitchen rota", "# Kitchen duty"),
    ("the door.", "the door. Thank you all."),
)


def copies() -> dict[str, str]:
    """One note, ten exact copies of it and ten with a word or two changed."""
    exact = {f"copies/same-{n}.md": ROTA for n in range(10)}
    near = {f"copies/near-{n}.md": ROTA.replace(*change) for n, change in enumerate(_CHANGES)}
    return {"copies/rota.md": ROTA, **exact, **near}


QUESTIONS = {
    "German": (
        "wie setze ich mein Passwort zurück?",
        "Wo finde ich die Einstellungen für die Synchronisierung?",
        "Warum startet das Programm nach dem Update nicht mehr?",
        "Kann ich mehrere Konten gleichzeitig verwenden?",
        "welche Dateiformate werden beim Import unterstützt",
        "Was passiert mit meinen Notizen, wenn ich das Abo kündige?",
        "wie kann man Obsidian ohne Internet benutzen",
        "Passwort zurücksetzen über die Kommandozeile",
        "Unterschied zwischen lokalem und entferntem Tresor",
        "Wie füge ich ein Bild in eine Notiz ein?",
    ),
    "French": (
        "comment réinitialiser mon mot de passe ?",
        "Où se trouvent les paramètres de synchronisation ?",
        "Pourquoi l'application ne démarre plus après la mise à jour ?",
        "Est-ce que je peux utiliser plusieurs comptes en même temps ?",
        "quels formats de fichier sont pris en charge",
        "Que deviennent mes notes si je résilie mon abonnement ?",
        "comment utiliser Obsidian sans connexion internet",
        "différence entre un coffre local et un coffre distant",
        "comment insérer une image dans une note",
        "à quoi sert le fichier de configuration du serveur",
    ),
    "Spanish": (
        "¿cómo restablezco mi contraseña?",
        "¿Dónde están los ajustes de sincronización?",
        "¿Por qué no arranca el programa después de la actualización?",
        "¿Puedo usar varias cuentas al mismo tiempo?",
        "qué formatos de archivo se pueden importar",
        "¿Qué pasa con mis notas si cancelo la suscripción?",
        "como usar Obsidian sin conexión a internet",
        "diferencia entre una bóveda local y una remota",
        "cómo insertar una imagen en una nota",
        "para qué sirve el archivo de configuración del servidor",
    ),
    "Russian": (
        "как сбросить пароль?",
        "Где находятся настройки синхронизации?",
        "Почему программа не запускается после обновления?",
        "Можно ли использовать несколько учётных записей?",
        "какие форматы файлов поддерживаются",
        "Что будет с заметками, если отменить подписку?",
        "как пользоваться Obsidian без интернета",
        "чем локальное хранилище отличается от удалённого",
        "как вставить картинку в заметку",
        "настройка API через config.json",
    ),
    "Chinese": (
        "如何重置密码?",
        "同步设置在哪里?",
        "为什么更新后程序无法启动?",
        "可以同时使用多个账户吗?",
        "导入支持哪些文件格式",
        "取消订阅后我的笔记会怎样?",
        "没有网络时如何使用Obsidian",
        "本地仓库和远程仓库有什么区别",
        "怎样在笔记中插入图片",
        "配置文件的作用是什么",
    ),
    "Japanese": (
        "パスワードをリセットするにはどうすればいいですか?",
        "同期の設定はどこにありますか?",
        "アップデート後にプログラムが起動しないのはなぜですか?",
        "複数のアカウントを同時に使えますか?",
        "インポートできるファイル形式は何ですか",
        "サブスクリプションを解約するとノートはどうなりますか?",
        "オフラインでObsidianを使う方法",
        "ローカルとリモートの保管庫の違い",
        "ノートに画像を挿入するには",
        "設定ファイルは何のためにありますか",
    ),
}

PAGES = {
    "German": "Wie man das Passwort ändert: Öffnen Sie die Einstellungen und wählen Sie das Konto. "
    "Was mit den Notizen passiert, wenn man kündigt, steht auf der Seite über das Abo.",
    "French": "Comment changer le mot de passe : ouvrez les paramètres et choisissez le compte. "
    "Où se trouvent les notes quand on résilie est expliqué dans la page sur l'abonnement.",
    "Spanish": "Cómo cambiar la contraseña: abra los ajustes y elija la cuenta. Qué pasa con las "
    "notas si se cancela está en la página sobre la suscripción.",
    "Russian": "Как сбросить пароль: откройте настройки и выберите запись. Что будет с заметками, "
    "если отменить подписку, написано на другой странице.",
    "Chinese": "如何重置密码:打开设置并选择账户。取消订阅后笔记会怎样,请看订阅页面。",
    "Japanese": "パスワードをリセットするには、設定を開いてアカウントを選びます。"
    "解約するとノートはどうなりますかは別のページにあります。",
}

ENGLISH = (
    "how do I reset my password?",
    "reset password",
    "What does Señor Müller say about the café in São Paulo?",
    "who was Kurt Gödel",
    "naïve Bayes and Schrödinger equation",
    "El Niño and La Niña events",
    "TGF-β signalling in α cells",
    "µ-law encoding",
    "die cast aluminium",
    "Comment on a pull request",
    "des encryption in les mis",
    "Was ist das mode of the server",
    "SELECT de, la FROM que WHERE el = 'los'",
    "def como(que, los): return para",
    "ls -la /etc/por/que",
    "`wie geht es` in backticks",
    "config.de.yml und.toml",
    "What does the error «не найдено» mean in the log file of the server?",
    "translate 你好 into English for the welcome page of the site",
    "vi editor",
    "de facto standard vis-à-vis de jure",
    "Ünïcödé",
    "",
    "???",
    "12345",
)
