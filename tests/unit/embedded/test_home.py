from __future__ import annotations

import hashlib
import os
import pwd
import tempfile
from pathlib import Path

import pytest

from interlock.embedded import default_folder, home, interlock_home
from interlock.errors import FolderTaken, InvalidSetting


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in ("INTERLOCK_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ordinary(monkeypatch):
    """An ordinary account that the password database does not know."""
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_001)


def test_interlock_home_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "chosen"))
    assert interlock_home() == tmp_path / "chosen"


def test_a_home_of_nobody_is_refused(monkeypatch):
    monkeypatch.setenv("INTERLOCK_HOME", "~no-such-account/x")
    with pytest.raises(InvalidSetting, match="INTERLOCK_HOME"):
        interlock_home()


def test_root_keeps_its_data_with_the_systems(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(home, "ROOT_HOME", tmp_path / "interlock")
    assert interlock_home() == tmp_path / "interlock"


def test_root_falls_back_to_temporary_files(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(home, "ROOT_HOME", tmp_path / "file" / "interlock")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert interlock_home() == tmp_path / "interlock-0"


def test_an_ordinary_account_follows_xdg(monkeypatch, tmp_path, ordinary):
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert interlock_home() == tmp_path / "interlock"


def test_an_empty_home_folder_is_enough(monkeypatch, tmp_path, ordinary):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert interlock_home() == tmp_path / ".local/share/interlock"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [None, ""])
def test_without_home_the_password_database_answers(monkeypatch, tmp_path, value):
    entry = pwd.struct_passwd(("ada", "x", 4_000_002, 1, "", str(tmp_path), "/bin/sh"))
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_002)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    if value is not None:
        monkeypatch.setenv("HOME", value)
    assert interlock_home() == tmp_path / ".local/share/interlock"


def test_an_account_without_any_home_uses_temporary_files(monkeypatch, tmp_path, ordinary):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert interlock_home() == tmp_path / "interlock-4000001"


def test_a_home_that_may_not_be_looked_into_is_no_home(monkeypatch, tmp_path, ordinary):
    """As after a change of the account that kept the HOME of root."""
    private, stat, access = tmp_path / "root", Path.stat, os.access
    private.mkdir()

    def stat_outside(place: Path, **options):
        if private in place.parents:
            raise PermissionError(13, "Permission denied", str(place))
        return stat(place, **options)

    def access_outside(place: Path, mode: int) -> bool:
        return mode == os.F_OK if place == private else private not in place.parents and access(place, mode)

    monkeypatch.setattr(Path, "stat", stat_outside)
    monkeypatch.setattr(os, "access", access_outside)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("HOME", str(private))
    assert interlock_home() == tmp_path / "interlock-4000001"


def test_a_link_among_temporary_files_is_not_trusted(monkeypatch, tmp_path, ordinary):
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "interlock-4000001").symlink_to(tmp_path)
    with pytest.raises(FolderTaken):
        interlock_home()


def test_each_project_has_its_own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("INTERLOCK_HOME", "/h")
    project = tmp_path / "My Project: the one with a very long name"
    project.mkdir()
    monkeypatch.chdir(project)
    digest = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:8]
    assert default_folder() == Path(f"/h/my-project-the-one-with--{digest}")


def test_a_project_reached_through_a_link_is_the_same_project(monkeypatch, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    monkeypatch.chdir(tmp_path / "project")
    direct = default_folder()
    monkeypatch.chdir(tmp_path / "link")
    assert default_folder() == direct
