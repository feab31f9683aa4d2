"""What a run found is there for the next one."""

from pathlib import Path

from gateway.doctor import results
from gateway.doctor.finding import Diagnosis, Finding, Level


def finding(check: str, evidence: str = "seen", engine: str = "e") -> Finding:
    return Finding(Level.WARNING, engine, "m", check, evidence, f"mend {check}")


def test_the_last_run_of_each_engine_is_read_back(tmp_path: Path) -> None:
    results.keep(tmp_path, Diagnosis((finding("stream"),), {"e": "0.32.0", "f": ""}), ["e", "f"], 0.0)
    assert results.last(tmp_path) == {
        "e": results.Record("e", "0.32.0", "1970-01-01T00:00:00+00:00", (finding("stream"),)),
        "f": results.Record("f", "unknown", "1970-01-01T00:00:00+00:00", ()),
    }


def test_each_version_has_its_own_result_and_the_last_run_counts(tmp_path: Path) -> None:
    results.keep(tmp_path, Diagnosis((finding("stream"),), {"e": "1"}), ["e"], 0.0)
    results.keep(tmp_path, Diagnosis((), {"e": "2"}), ["e"], 1.0)
    assert results.last(tmp_path)["e"].version == "2"
    assert '"1": {' in (tmp_path / "e.json").read_text()


def test_new_and_gone_findings_and_versions_are_told_apart_from_numbers_that_vary(tmp_path: Path) -> None:
    before = Diagnosis((finding("clock", "12 s"), finding("stream")), {"e": "1"})
    results.keep(tmp_path, before, ["e"], 0.0)
    now = Diagnosis((finding("clock", "13 s"), finding("tls")), {"e": "2"})
    change = results.compare(results.last(tmp_path), now)
    assert [one.check for one in change.new] == ["tls"]
    assert [one.check for one in change.gone] == ["stream"]
    assert change.versions == {"e": ("1", "2")}


def test_an_engine_that_the_file_no_longer_has_is_not_missed(tmp_path: Path) -> None:
    results.keep(tmp_path, Diagnosis((finding("stream", engine="old"),), {"old": "1"}), ["old"], 0.0)
    assert results.compare(results.last(tmp_path), Diagnosis((), {"e": "1"})) == results.Difference()


def test_files_that_cannot_be_read_count_as_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"engine": "b", "last": "1", "runs": {"1": {"at": "", "findings": [{}]}}}')
    assert results.last(tmp_path) == {}


def test_each_configuration_file_has_a_folder_of_its_own(tmp_path: Path) -> None:
    folders = {results.folder_for(tmp_path, tmp_path / name / "turnout.yaml") for name in "ab"}
    assert len(folders) == 2
    assert results.default_folder({"XDG_STATE_HOME": "/state"}) == Path("/state/turnout/doctor")
