"""What no command can do is said in one line, below the usage where that is wrong: nothing else is printed, and nothing written."""

from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run

WORDS = {
    "FLIP": str(cachescope.sample("config_flip")),
    "CACHE": str(cachescope.sample("rank_in_config") / "cache"),
    "DIGITS": "9" * 5000,
}
FILES = {
    "empty": b"",
    "text": b"once upon a time\n",
    "bytes": bytes(range(256)) * 100,
    "later": b'{"cachescope_lock": 99}',
    "cut": b'{"cachescope_lock": 1, "files": [',
    "list": b"[]",
    "brace": b"{",
    "half": b'{"runtime_context": true}',
    "weather": b'{"runtime_context": {"weather": true}, "compile_context": true}',
    "own.env": b"PATH=/bin\n",
}
NO_COMMAND = "cachescope preflight: error: give the command to run after --"
FUSION = "inductor_config[epilogue_fusion]"


@pytest.mark.parametrize(("given", "status", "said"), [
    ("explain", 2, "required: PATH"),
    ("explode", 2, "explode"),
    ("explain x --no-such", 2, "--no-such"),
    ("explain x --causes -1", 2, "--causes"),
    ("explain FLIP --key DIGITS", 2, "no key '9999"),
    ("explain FLIP --baseline DIGITS", 2, "no baseline '9999"),
    ("explain FLIP --lookup DIGITS", 2, "argument --lookup"),
    ("explain FLIP --jobs 0", 2, "argument --jobs: '0' is not a number of processes (1 or more)"),
    ("explain FLIP --jobs -2", 2, "argument --jobs: '-2' is not a number of processes (1 or more)"),
    ("explain FLIP --jobs two", 2, "argument --jobs: 'two' is not a number of processes (1 or more)"),
    ("demo nothing", 2, "no sample 'nothing'"),
    ("record", 2, "give the command to run after --"),
    ("diff x", 2, "required: B"),
    ("diff fzzz fhcz FLIP", 2, "fzzz"),
    ("diff f fhcz FLIP", 2, "'f' begins 2 keys"),
    ("diff run:9 run:0 FLIP", 2, "run 9"),
    ("diff 99 1 FLIP", 2, "99"),
    ("diff /no/a /no/b", 1, "/no/a"),
    ("diff FLIP TMP/missing", 1, "TMP/missing"),
    ("diff TMP/missing FLIP", 1, "TMP/missing"),
    ("check FLIP", 2, "give a bar"),
    ("check FLIP --min-hit-rate 90", 2, "--min-hit-rate"),
    ("check FLIP --min-hit-rate nan", 2, "--min-hit-rate"),
    ("check FLIP --max-time-lost soon", 2, "--max-time-lost"),
    ("check FLIP --max-time-lost -3", 2, "--max-time-lost"),
    ("check FLIP --max-time-lost 1h", 2, "--max-time-lost"),
    ("check FLIP --min-hit-rate 0.9 --format xml", 2, "--format"),
    ("check FLIP --min-hit-rate 0.9 --format junit --json", 2, "--json"),
    ("check FLIP --against TMP/missing", 1, "TMP/missing"),
    ("entries x --most -1", 2, "--most"),
    ("entries CACHE fa fb", 2, "only one key can be shown"),
    ("entries CACHE fa --locks", 2, "for whole directories"),
    ("entries CACHE fa --prune-list", 2, "for whole directories"),
    ("entries CACHE a", 2, "'a' begins 4 keys"),
    ("entries CACHE no", 2, "no key 'no'"),
    ("report FLIP", 2, "-o"),
    ("report FLIP -o TMP", 1, "is a directory"),
    ("report TMP/missing -o TMP/x.html", 1, "TMP/missing"),
    ("what-if FLIP --schema TMP/list", 1, "TMP/list: a key schema is a mapping"),
    ("what-if FLIP --schema TMP/brace", 1, "TMP/brace: a key schema is a JSON object"),
    ("what-if FLIP --schema TMP/half", 1, "TMP/half: an isolation schema has exactly the keys runtime_context, compile_context"),
    ("what-if FLIP --schema TMP/missing", 1, "TMP/missing: cannot be read"),
    ("what-if FLIP --without inductor_config[epilog_fusion]", 2, FUSION),
    ("what-if FLIP --without EMPTY", 2, "is named by a text, not the empty one"),
    ("contexts FLIP --schema TMP/weather", 1, "no form 'weather'; it has inductor_configs"),
    ("contexts FLIP --schema TMP/missing", 1, "TMP/missing"),
    ("audit", 2, "required: DIR|FILE"),
    ("lock CACHE -o TMP/x.lock --expect CACHE", 2, "what is expected holds no lookup of a key: give traces or logs of a run"),
    ("verify TMP/missing CACHE", 1, "TMP/missing"),
    ("verify TMP/text CACHE", 1, "TMP/text"),
    ("verify TMP/later CACHE", 1, "TMP/later"),
    ("verify TMP CACHE", 1, "TMP"),
    ("preflight", 2, NO_COMMAND),
    ("preflight --", 2, NO_COMMAND),
    ("preflight --json --", 2, NO_COMMAND),
    ("preflight --min-hit-rate 2 -- true", 2, "--min-hit-rate"),
    ("preflight -- no-such-command", 127, "command not found"),
    ("preflight -- no-\x1b[31msuch\u202e", 127, "command not found"),
    ("preflight -- TMP/text", 126, "TMP/text"),
    ("preflight --against TMP/empty -- touch TMP/ran", 1, "TMP/empty: this file is empty"),
    ("preflight --against TMP/text -- touch TMP/ran", 1, "TMP/text: this file holds no trace"),
    ("preflight --against TMP/bytes -- touch TMP/ran", 1, "TMP/bytes: this file holds no trace"),
    ("preflight --against TMP/later -- touch TMP/ran", 1, "TMP/later: a lock of version 99"),
    ("preflight --against TMP/cut -- touch TMP/ran", 1, "TMP/cut: no lock"),
    ("preflight --against CACHE --against TMP/text -- touch TMP/ran", 1, "TMP/text: this file holds no trace"),
    ("fix", 2, "give PATH"),
    ("fix cache", 2, "give PATH"),
    ("fix -- python", 2, "give PATH"),
    ("fix cache --", 2, "give PATH"),
    ("fix cache --json -- python", 2, "options come before PATH: --json"),
    ("fix TMP/missing -- python", 1, "no such file or directory"),
    ("fix --write TMP/own.env TMP -- python", 1, "left as it is"),
])  # fmt: skip
def test_what_cannot_be_done(given: str, status: int, said: str, run: Run, tmp_path: Path) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    words = [WORDS.get(word, word).replace("TMP", str(tmp_path)) for word in given.split()]
    done = run(*("" if word == "EMPTY" else word for word in words))
    assert (done.status, done.out) == (status, "")
    *usage, line = done.err.splitlines()
    assert said.replace("TMP", str(tmp_path)) in line and line.isprintable()
    assert line.startswith("cachescope") and (not usage or usage[0].startswith("usage: "))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == FILES
