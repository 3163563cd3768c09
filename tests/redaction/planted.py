"""A corpus of secrets to plant, the ways in which one is spelled, and the search that finds any of them again. Made by hand."""

import base64
import binascii
import html
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Planted:
    """A text as a source holds it, and what of it must come out nowhere; the whole text where every word of it is common."""

    text: str
    cores: tuple[str, ...] = ()

    @property
    def telling(self) -> tuple[str, ...]:
        return self.cores or (self.text,)


def _of(core: str, *texts: str) -> list[Planted]:
    return [Planted(text, tuple(core.split())) for text in texts]


PATHS: Final = [
    *_of(
        "zquill vanterra", "/home/zquill/vanterra/run.log", "/Users/zquill/Library/vanterra",
        "/root/zquill/vanterra.py", "/mnt/efs/zquill vanterra/model.pt",
        "/tmp/torchinductor_zquill/vanterra/ab/x.py", "/tmp/torchinductor_zquill/fxgraph/ab/vanterra",
        "/opt/triton/zquill/vanterra/kernel.py", "/opt/torch/zquill/vanterra.py", "~zquill/vanterra",
        "~/zquill/vanterra", "$HOME/zquill/vanterra", "${HOME}/zquill/vanterra",
        "%USERPROFILE%\\zquill\\vanterra", "../../zquill/vanterra.yaml", "./zquill/vanterra",
        "zquill/vanterra/train.py", "C:\\Users\\zquill\\vanterra", "C:/Users/zquill/vanterra",
        "c:\\users\\zquill\\new\\table\\vanterra.txt", "\\\\zquill\\share\\vanterra",
        "//zquill/share/vanterra", "\\\\?\\C:\\zquill\\vanterra", "\\\\.\\UNC\\zquill\\vanterra",
        "D:zquill\\vanterra", "file:///home/zquill/vanterra", "file:/home/zquill/vanterra",
        "s3://zquill-bucket/vanterra/x", "gs://zquill/vanterra", "hdfs://zquill:9000/vanterra",
        "abfss://zquill@vanterra.dfs.core.windows.net/x", "ssh://zquill@vanterra/x",
        "git@zquill:vanterra/repo.git", "zquill@vanterra:/srv/x", "https://zquill:vanterra@example.com/x",
        "https://example.com/a?user=zquill&token=vanterra", "https://github.com/zquill/vanterra/commit/abc",
        "https://github.com/pytorch/pytorch/issues?q=zquill+vanterra", "jdbc:postgresql://zquill/vanterra",
        "redis://:zquill@vanterra:6379/0", "docker://zquill/vanterra:latest",
        "zquill.vanterra/image:v1@sha256:" + "0" * 64, "/proc/self/cwd/zquill/vanterra",
        "/данные/zquill/vanterra", "/home/zquill/vanterra:12:in forward",
        "PYTHONPATH=/home/zquill:/srv/vanterra", "/home/zquill and /home/vanterra",
    ),
    *_of("zquüill", "/home/zquüill/x", "zquüill"),
    *_of("данные", "/mnt/данные/run"),
    # Of words that everyone uses.
    *map(
        Planted,
        (
            "/data/max/test", "/home/user/data", "data/max/test.py", "C:\\Users\\max\\test", "C:/max/data",
            "\\\\node\\data", "s3://data/max", "file:///data/max", "~/data/max", "~max/data", "../max/test",
            "max@data", "max@data.internal", "data-node-7", "max.data.internal",
        ),
    ),
]  # fmt: skip
HOSTS: Final = [
    *_of(
        "kestrel", "kestrel", "KESTREL", "kestrel-7", "kestrel07", "kestrel.internal",
        "gpu-kestrel.prod.example.com", "KESTREL.EXAMPLE.COM", "kestrel.local", "kestrel:8080",
        "node.kestrel.svc.cluster.local:443", "trainer-kestrel-7f9c6b5d4-x2x9k", "kestrel_worker_3",
        "host=kestrel", "HOSTNAME=kestrel", "ip-10-0-kestrel",
    ),
    *map(
        Planted,
        (
            "ip-10-1-22-133", "ip-10-1-22-133.ec2.internal", "10.1.22.133", "10.1.22.133:29500",
            "tcp://10.1.22.133:29500", "192.168.77.201/24", "fe80::1ff:fe23:4567:890a",
            "fe80::1ff:fe23:4567:890a%eth0", "[2001:db8::8a2e:370:7334]:443",
            "2001:0db8:0000:0000:0000:8a2e:0370:7334", "2001:DB8::8A2E", "::ffff:10.1.22.133",
            "00:1a:2b:3c:4d:5e", "00-1A-2B-3C-4D-5E", "001a.2b3c.4d5e", "00:11:22:33:44:55",
        ),
    ),
]  # fmt: skip
PEOPLE: Final = _of(
    "zquill", "zquill", "zquill@vanterra.com", "Z. Quill <zquill@vanterra.com>", "zquill+x@vanterra.co.uk",
    '"zquill x"@vanterra.com', "mailto:zquill@vanterra.com", "USER=zquill", "user: zquill", "zquill_exp_7",
    "model_of_zquill", "ZQuillModel", "L['self'].zquill", "L_self_modules_zquill_parameters_weight_",
    "triton_poi_fused_zquill_0", "cpp_fused_add_zquill_1", "torch.ops.zquill.attention", "torch.zquill",
    "zquill.py", "zquill::attention", "zquill(x)", "by zquill, yesterday",
)  # fmt: skip
BOARDS: Final = [
    Planted(text)
    for text in (
        "GPU-0123abcd-4567-89ab-cdef-0123456789ab", "gpu-0123ABCD-4567-89AB-CDEF-0123456789AB",
        "MIG-0123abcd-4567-89ab-cdef-0123456789ab", "MIG-GPU-0123abcd-4567-89ab-cdef-0123456789ab/7/0",
        "0123ABCD-4567-89AB-CDEF-0123456789AB", "uuid0123abcd-4567-89ab-cdef-0123456789ab",
        "0123abcd456789abcdef0123456789ab", "00000000:3B:00.0", "0000:3b:00.0", "3B:00.0", "65:00.0",
        "PCI:0000:65:00.0", "pci_bus_id=0000:65:00.0",
    )
]  # fmt: skip
TOKENS: Final = [
    *map(
        Planted,
        (
            "AKIA" + "IOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
            "ghp_" + "a1B2" * 9,
            "github_pat_" + "11ABCDEFG0" * 8,
            "glpat-" + "x1Y2z3W4v5U6t7S8r9Q0",
            "hf_" + "AbCdEfGh" * 4,
            "sk-" + "proj-" + "T3Bl" * 10,
            "sk-ant-" + "api03-" + "Zz9" * 12,
            "xoxb-" + "123456789012-" + "abcdEFGH" * 3,
            "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
            "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJ6cXVpbGwifQ." + "c2lnbmF0dXJl",
            "npm_" + "q1W2" * 9,
            "pypi-" + "AgEIcHlwaS5vcmc" + "CJDA",
            "dop_v1_" + "0a1b" * 16,
            "SG." + "aBcDeFgHiJkLmNoPqRsTuV." + "x" * 43,
            "7f3c" * 10,  # a commit
            "7f3c" * 16,  # a commit, or the hash of no key that was read
            "7f3c9d1",
            "0x7f3c9d1a",
            "v2.3.1-14-g7f3c9d1",
            "MIIEpAIBAAKCAQEA" + "x3Vq" * 11,
        ),
    ),
    *_of(
        "hunter2zq", "password=hunter2zq", "password: hunter2zq", "PASSWORD='hunter2zq'",
        '"passwd": "hunter2zq"', "--token hunter2zq", "--token=hunter2zq", "Authorization: Bearer hunter2zq",
        "authorization: Basic hunter2zq", "X-Api-Key: hunter2zq", "AWS_SECRET_ACCESS_KEY=hunter2zq",
        "MYVAR=hunter2zq", "export WANDB_API_KEY=hunter2zq;",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2zq\n-----END RSA PRIVATE KEY-----",
        "{'secret': 'hunter2zq'}",
    ),
    *_of(
        "max-autotune", "password=max-autotune", "Authorization: Bearer max-autotune",
        "VANTERRA_MODE=max-autotune",
    ),
]  # fmt: skip
CORPUS: Final = [*PATHS, *HOSTS, *PEOPLE, *BOARDS, *TOKENS]

# How a text is written inside others.
WAYS: Final[dict[str, Callable[[str], str]]] = {
    "bare": str,
    "after a word": lambda text: f"read {text} again",
    "after an equal sign": lambda text: f"x={text}",
    "after a colon": lambda text: f"x:{text}",
    "after a colon and a blank": lambda text: f"file: {text}: no such file",
    "after an at": lambda text: f"x@{text}",
    "after -I": lambda text: f"-I{text}",
    "after -L": lambda text: f"g++ -L{text} -o x",
    "after an option": lambda text: f"--cache-dir={text}",
    "in parentheses": lambda text: f"({text})",
    "in a call": lambda text: f"f({text}, 2)",
    "in angle brackets": lambda text: f"<{text}>",
    "in brackets": lambda text: f"[{text}]",
    "in braces": lambda text: f"{{{text}}}",
    "between commas": lambda text: f"a,{text},b",
    "between semicolons": lambda text: f"a;{text};b",
    "between bars": lambda text: f"a|{text}|b",
    "in quotes": lambda text: f"'{text}'",
    "in double quotes": lambda text: f'"{text}"',
    "in backticks": lambda text: f"`{text}`",
    "in typographic quotes": lambda text: f"“{text}”",
    "as bytes": lambda text: repr(text.encode()),
    "as repr": repr,
    "as repr of repr": lambda text: repr(repr(text)),
    "as JSON": json.dumps,
    "as JSON of JSON": lambda text: json.dumps(json.dumps(text)),
    "as JSON with slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "as JSON in ASCII numbers": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "slashes in numbers": lambda text: text.replace("/", "\\u002f"),
    "slashes in numbers twice": lambda text: text.replace("/", "\\\\u002f"),
    "slashes in hex": lambda text: text.replace("/", "\\x2f"),
    "percent-escaped": lambda text: urllib.parse.quote(text, safe=""),
    "percent-escaped twice": lambda text: urllib.parse.quote(urllib.parse.quote(text, safe=""), safe=""),
    "as HTML": lambda text: html.escape(text).replace("/", "&#x2F;"),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in URL base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "in hex": lambda text: text.encode().hex(),
    "in capitals": str.upper,
    "at a line's end": lambda text: f"read:\n{text}\n",
    "after a tab": lambda text: f"x\t{text}",
    "with a full stop": lambda text: f"It is {text}.",
    "with dots": lambda text: f"…{text}…",
    "an environment": lambda text: f"VANTERRA={text}",
    "a dictionary": lambda text: str({"a": text}),
    "twice": lambda text: f"{text} -> {text}",
}


def leaks(out: str, *planted: Planted) -> list[str]:
    """What of planted secrets can be read in an output, in any of its decodings."""
    cores = {core.casefold() for one in planted for core in one.telling}
    found: set[str] = set()
    for form in map(str.casefold, dict.fromkeys(_decoded(out))):
        found |= {core for core in cores if core in form}
    return sorted(found)


def _decoded(out: str) -> Iterator[str]:
    forms = [out]
    for _ in range(2):
        forms = list(dict.fromkeys([*forms, *(new for form in forms for new in _decoded_once(form))]))
    yield from forms
    for run in set(re.findall(r"[A-Za-z0-9+/_-]{8,}={0,2}", out)):
        yield from _unpacked(run)


def _decoded_once(text: str) -> Iterator[str]:
    yield html.unescape(text)
    yield urllib.parse.unquote(text)
    yield text.replace("\\/", "/").replace("\\\\", "\\")
    yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    yield re.sub(r"(?:\\x[0-9a-fA-F]{2})+", _of_bytes, text)


def _of_bytes(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("\\x", "")).decode("utf-8", "replace")


def _unpacked(run: str) -> Iterator[str]:
    padded = run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4)
    for decode in (base64.b64decode, base64.urlsafe_b64decode, binascii.unhexlify):
        try:
            yield decode(padded if decode is not binascii.unhexlify else run).decode()
        except ValueError:
            continue
