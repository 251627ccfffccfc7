from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from interlock.embedded import folder as folder_module
from interlock.embedded.folder import ServerFolder
from interlock.errors import FolderTaken


@pytest.fixture(autouse=True)
def ordinary(monkeypatch, tmp_path):
    monkeypatch.setattr(folder_module, "account", lambda: None)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))


def padded(length: int) -> ServerFolder:
    return ServerFolder(Path("/" + "x" * (length - 1)))


def test_the_socket_lies_inside_as_long_as_its_path_fits():
    room = 107 - len("/socket/.s.PGSQL.65535")
    assert padded(room).socket == padded(room).path / "socket"
    assert padded(room + 1).socket.parent == Path(tempfile.gettempdir())


def test_a_long_path_in_another_alphabet_counts_in_bytes():
    assert ServerFolder(Path("/" + "é" * 50)).socket.parent == Path(tempfile.gettempdir())


def test_folders_with_long_paths_have_different_sockets():
    assert padded(200).socket != padded(201).socket


def test_two_that_start_at_once_find_each_others_folder_within_reach_of_the_server(tmp_path, monkeypatch):
    stranger = SimpleNamespace(name="stranger", can_reach=lambda place: bool(place.stat().st_mode & 0o001))
    monkeypatch.setattr(folder_module, "account", lambda: stranger)
    tmp_path.chmod(0o755)
    path, chmod, rivals = tmp_path / "made" / "postgres", Path.chmod, []

    def chmod_after_a_rival(place: Path, mode: int) -> None:
        if place not in rivals:
            rivals.append(place)
            ServerFolder(path).claim()
        chmod(place, mode)

    monkeypatch.setattr(Path, "chmod", chmod_after_a_rival)
    ServerFolder(path).claim()
    assert path in rivals


def test_a_folder_that_a_rival_has_made_and_not_yet_opened_is_waited_for(tmp_path, monkeypatch):
    """With a strict umask there is a moment between the two."""
    answers = iter([False, False, True])
    stranger = SimpleNamespace(name="stranger", can_reach=lambda _: next(answers))
    monkeypatch.setattr(folder_module, "account", lambda: stranger)
    ServerFolder(tmp_path / "postgres").claim()
    assert list(answers) == []


@pytest.mark.parametrize("hostile", ["link", "open", "file"])
def test_a_strangers_socket_folder_is_refused(tmp_path, hostile):
    server = padded(200)
    if hostile == "link":
        server.socket.symlink_to(tmp_path)
    elif hostile == "open":
        server.socket.mkdir()
        server.socket.chmod(0o777)
    else:
        server.socket.touch()
    with pytest.raises(FolderTaken):
        server.make_socket_folder()


def test_our_own_socket_folder_is_private_and_used_again(tmp_path):
    server = padded(200)
    server.make_socket_folder()
    server.make_socket_folder()
    assert server.socket.stat().st_mode & 0o777 == 0o700


def test_claiming_changes_no_folder_that_was_there(tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    given.chmod(0o750)
    ServerFolder(given / "a/b").claim()
    assert given.stat().st_mode & 0o777 == 0o750
    assert (given / "a/b").stat().st_mode & 0o777 == 0o700


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(FolderTaken, match="files of something else"):
        ServerFolder(tmp_path).claim()
    assert [place.name for place in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FolderTaken, match="a file is in its place"):
        ServerFolder(tmp_path / "file").claim()


def test_a_folder_is_claimed_twice_without_complaint(tmp_path):
    for _ in range(2):
        ServerFolder(tmp_path / "server").claim()
