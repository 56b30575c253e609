"""What a server is started on."""

from pathlib import Path

import pytest

from ragdocs.cli.main import refuse_everything
from ragdocs.config.loading import load_config
from ragdocs.errors import ConfigError


@pytest.mark.parametrize("is_home", [True, False])
def test_a_whole_home_or_disk_is_not_indexed_unless_it_is_asked_for(tmp_path, monkeypatch, is_home):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path if is_home else Path("/")
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match="--docs DIR"):
        refuse_everything(load_config(cwd=folder, environ=environ))
    meant = {"indexing": {"documents_path": str(folder)}}
    refuse_everything(load_config(cwd=folder, environ=environ, flags=meant))
    below = tmp_path / "notes"
    below.mkdir()
    refuse_everything(load_config(cwd=below, environ=environ))
