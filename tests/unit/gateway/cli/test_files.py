"""A file that is replaced as a whole."""

import os
import stat
from pathlib import Path

import pytest

from gateway.cli.files import replace_whole


def test_a_new_file_gets_what_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_whole(tmp_path / "new", b"text")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_text() == "text"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_permissions_stay_and_the_old_file_is_whole_for_its_readers(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o600)
    with file.open() as reader:
        replace_whole(file, b"new")
        assert reader.read() == "old"
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_links_stay_links(tmp_path: Path) -> None:
    """Also links to links, and one whose target is in another folder."""
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "file").write_text("old")
    (tmp_path / "one").symlink_to("real/file")
    (tmp_path / "two").symlink_to("one")
    replace_whole(tmp_path / "two", b"new")
    assert (folder / "file").read_text() == "new"
    assert (tmp_path / "two").readlink() == Path("one")
    assert (tmp_path / "one").readlink() == Path("real/file")
    assert list(folder.iterdir()) == [folder / "file"]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_whole(tmp_path / "folder", b"text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
