"""`make test` leaves no test out."""

from tests.run import COMPUTING, TESTS, WAITING


def test_every_folder_with_tests_is_in_one_half() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}

    assert sorted([*WAITING, *COMPUTING]) == sorted(folders)
