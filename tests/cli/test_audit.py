"""``cachescope audit``: its texts, JSON, SARIF, status, and what it hides."""

import os
import pickle
import re
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import cachescope
from cachescope.frames.audit_rules import AUDIT_RULES
from cachescope.terms import AUDIT_LEVELS
from tests.auditing.hostile_entries import FX, REDUCED, SOUND, entry, write
from tests.cli.conftest import Run

# RFC 3986, a relative reference without a colon in its first part; %XX or what needs none.
URI = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-F]{2})*")


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """Timings: nothing in them is run."""
    root = tmp_path / "clean"
    write(root, f"cache/{'0' * 64}", b"{}")
    return root


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    root = tmp_path / "sound"
    entry(root, FX, SOUND)
    write(root, f"cc/c{'c' * 51}.main.so", b"\x7fELF")
    return root


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    root = tmp_path / "host ile"
    entry(root, FX, pickle.dumps(REDUCED["os.system"]))
    return root


@pytest.mark.parametrize(("level", "statuses"), [
    ("danger", (0, 0, 1)), ("warning", (0, 0, 1)), ("unproven", (0, 3, 1)), ("never", (0, 0, 0)),
    (None, (0, 3, 1)),
])  # fmt: skip
def test_the_status_says_whether_something_was_found(
    run: Run, clean: Path, sound: Path, hostile: Path, level: str | None, statuses: tuple[int, ...]
) -> None:
    options = [] if level is None else ["--fail-on", level]
    assert tuple(run("audit", path, *options).status for path in (clean, sound, hostile)) == statuses


def test_what_cannot_be_read_is_2_and_hides_nothing_else(run: Run, hostile: Path, tmp_path: Path) -> None:
    done = run("audit", tmp_path / "gone", hostile)
    assert done.status == 2 and done.err == f"cachescope: {tmp_path / 'gone'}: is not there\n"
    assert "posix.system" in done.out


def test_the_text_names_what_where_and_what_to_do(run: Run, hostile: Path) -> None:
    out = run("audit", hostile).out
    (path,) = [path for path in hostile.rglob("*") if path.is_file()]
    offset = path.read_bytes().index(b"system")
    assert out.startswith("finding: do not load it")
    assert "1 file looked at: danger 1, warning 0, unproven 0, note 0\n" in out
    assert f"  {path}, byte {offset}\n      loading it imports posix.system" in out
    assert "Do not let torch load this cache" in out


def test_json_holds_the_frame(run: Run, hostile: Path) -> None:
    said = run("audit", hostile, "--json").json
    frame = cachescope.audit(hostile)
    assert said["counts"] == {"danger": 1, "warning": 0, "unproven": 0, "note": 0}
    assert [list(row) for row in said["findings"]] == [list(frame.columns)]
    assert list(frame.columns) == cachescope.describe("audit")["column"].tolist()
    assert said["findings"][0]["path"] == frame["path"][0]


def test_every_rule_is_described() -> None:
    described = cachescope.describe("audit_rules")
    assert described["rule"].tolist() == list(AUDIT_RULES)
    assert set(described["level"]) == set(AUDIT_LEVELS)


def check_required(log: dict[str, Any]) -> list[dict[str, Any]]:
    """What the schema of SARIF 2.1.0 requires of each object that is there, by hand; gives the results."""
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result["locations"]:
            place = location["physicalLocation"]
            assert URI.fullmatch(place["artifactLocation"]["uri"])
            assert place.get("region", {"byteOffset": 0})["byteOffset"] >= 0
            base = place["artifactLocation"]["uriBaseId"]
            if "originalUriBaseIds" in run:
                assert run["originalUriBaseIds"][base]["uri"].endswith("/")
    return list(run["results"])


def test_sarif_says_the_same_and_leads_to_the_file(run: Run, hostile: Path) -> None:
    log = run("audit", hostile, "--format", "sarif").json
    (result,) = check_required(log)
    place = result["locations"][0]["physicalLocation"]
    base = log["runs"][0]["originalUriBaseIds"][place["artifactLocation"]["uriBaseId"]]["uri"]
    assert base.startswith("file:///")
    path = unquote(base.removeprefix("file://")) + unquote(place["artifactLocation"]["uri"])
    assert os.path.isfile(path)
    with open(path, "rb") as file:
        assert file.read()[place["region"]["byteOffset"] :].startswith(b"system")
    assert result["level"] == "error"


def test_sarif_of_odd_names_has_valid_uris(run: Run, sound: Path) -> None:
    odd = ["a b", "100%", "ä\u202e", "c:d", "q?x#y", "new\nline", "\\back", "%2e%2e"]
    for name in odd:
        (sound / FX / name).write_bytes(b"x")
    with open(os.fsencode(sound / FX) + b"/\xff", "wb"):
        pass
    results = check_required(run("audit", sound, "--format", "sarif").json)
    uris = {unquote(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for r in results}
    assert {f"{FX}/{name}" for name in odd} <= uris


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_redacted_nothing_of_the_place_is_left(run: Run, hostile: Path, tmp_path: Path, form: str) -> None:
    shown = run("audit", hostile, "--redact", "--format", form)
    assert shown.status == 1 and str(tmp_path) not in shown.out
    assert "host ile" not in shown.out and "host%20ile" not in shown.out
    assert FX in shown.out  # keys are no secret
    assert "posix.system" in shown.out


def test_several_sources_are_told_apart(run: Run, hostile: Path, clean: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(hostile, "cache")
    log = run("audit", clean, hostile, packed, "--format", "sarif").json
    places = (one["locations"][0]["physicalLocation"] for one in check_required(log))
    bases = {place["artifactLocation"]["uriBaseId"] for place in places}
    assert bases == {"SOURCE1", "SOURCE2"}


@pytest.mark.parametrize("data", [b"hello\n", b"\x00\xff" * 500, b"[]", b"x = 1\n"])
def test_what_is_nothing_of_a_cache_does_not_read_like_a_clean_one(
    run: Run, data: bytes, clean: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_bytes(data)
    for path in (tmp_path / "other", tmp_path / "other" / "notes"):
        done = run("audit", str(path), str(clean))
        assert done.status == 2 and "holds nothing that torch or Triton writes" in done.err
        assert "not proven: not everything could be read" in run("audit", str(path)).out
        hidden = run("audit", str(path), "--redact")
        assert hidden.status == 2 and str(tmp_path) not in hidden.err and str(path) not in hidden.out
        with pytest.raises(cachescope.SourceError, match="holds nothing"):
            cachescope.audit(path)
    (tmp_path / "empty").mkdir()
    assert run("audit", str(tmp_path / "empty")).status == 0
