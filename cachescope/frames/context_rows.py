"""Rows of isolation contexts, captured or reconstructed."""

from __future__ import annotations

from typing import Final

from cachescope.rows import Time, col, row
from cachescope.wording import file_size, plural

_NOT_RECORDED: Final = "not recorded: a bare context, or one reconstructed from a run"
_NOT_KNOWN: Final = "null, or not known: see missing_forms"

# fmt: off


@row("contexts")
class ContextRow:
    """One isolation context: captured by a snapshot, or reconstructed from the hash details of a run.

    A snapshot that a recorded process took of itself is the context of its run. Forms that the lookups of the run show are theirs.
    """

    context: int = col("number of the context: snapshots of no run first, then runs")
    source: str = col("the snapshot or the source of the run that it comes from")
    run: int | None = col("the process", missing="a snapshot of no recorded run")
    inductor_configs: str | None = col(
        "context form, as JSON; for a run, as it was during its lookups, including the options of torch.compile",
        missing=_NOT_KNOWN)
    torch_determinism_configs: str | None = col("context form, as JSON", missing=_NOT_KNOWN)
    cuda_matmul_precision_configs: str | None = col("context form, as JSON", missing=_NOT_KNOWN)
    torch_version_hash: str | None = col("context form, base64 of torch's own key", missing=_NOT_KNOWN)
    triton_version_hash: str | None = col("context form, Triton's own key", missing=f"no Triton, {_NOT_KNOWN}")
    runtime: str | None = col("context form, CUDA or HIP: how torch was built", missing=f"a CPU build, {_NOT_KNOWN}")
    runtime_version: str | None = col("context form", missing=f"a CPU build, {_NOT_KNOWN}")
    accelerator_properties: str | None = col("context form, repr of the device's properties", missing=f"no device, {_NOT_KNOWN}")
    missing_forms: tuple[str, ...] = col("forms that could not be known, and forms of a newer torch")
    hashed_forms: tuple[str, ...] = col(
        "those of the missing forms whose hash by torch is known: they can be compared, but not shown")
    torch_detail_hash: str | None = col(
        "torch's hash of its own key, as the hash detail torch_version has it", missing="not known")
    text_only: tuple[str, ...] = col(
        "paths of values that JSON cannot represent, kept as text: torch itself makes no key from them",
        torch_name="not_json of the snapshot")
    known_from: str | None = col(
        "torch (its _isolation_context), rebuilt (2.6 to 2.9: the same forms, from which these versions make no key), "
        "hash_details, or entries (of directories alone: one context for all entries that agree)",
        missing="a bare context")
    torch_version: str | None = col("version of torch", missing="not recorded")
    python_version: str | None = col("version of Python", missing="not recorded")
    platform: str | None = col("operating system and machine", missing=_NOT_RECORDED)
    host: str | None = col("host name", missing=_NOT_RECORDED)
    pid: int | None = col("process id", missing="not recorded")
    time: Time | None = col("when it was captured; for a run that was not, its first record", unit="UTC", missing="not recorded")
    environment: str | None = col("variables that affect caching, as JSON", missing=_NOT_RECORDED)
    settings: str | None = col("other settings of the process that affect a key or the code, as JSON", missing=_NOT_RECORDED)
    device_properties: tuple[str, ...] = col("torch's text for each device")
    key_fields: str | None = col(
        "field -> hash of each process-wide field of FX keys, as JSON", missing="not captured; for a run, see its hash details")
    aot_key_fields: str | None = col("the additional fields of AOTAutograd keys, as JSON", missing="as key_fields")
    functorch_config: str | None = col(
        "the options that keys have as the one field autograd_config, as JSON of name -> Python literal",
        missing="not captured, as by cachescope before this column")
    key_fields_problem: str | None = col("why torch gave no key fields", missing="it gave them, or was not asked")
    torch_manifest: str | None = col(
        "the hash of each source file in torch's own key, as JSON", missing="not captured: cachescope capture --torch-manifest")
    cores: int | None = col("cores of the machine", missing=_NOT_RECORDED)
    usable_cores: int | None = col("cores that the process may run on (sched_getaffinity)", missing=_NOT_RECORDED)
    core_quota: float | None = col(
        "how many cores its control groups let it use (cpu.max)", missing="no limit, or not recorded, as cores then is")
    memory_limit_bytes: int | None = col(
        "the memory that its control groups let it use (memory.max)", unit="bytes",
        missing="no limit, or not recorded, as cores then is")

    @property
    def machine(self) -> str:
        """``2 of 64 cores, 1.5 by quota, 16.0 GB of memory``; empty if not recorded."""
        few = "" if self.usable_cores in (None, self.cores) else f"{self.usable_cores} of "
        parts = [f"{few}{plural(self.cores, 'core')}"] if self.cores is not None else []
        parts += [f"{self.core_quota:g} by quota"] if self.core_quota is not None else []
        limit = self.memory_limit_bytes
        return ", ".join(parts + ([f"{file_size(limit)} of memory"] if limit is not None else []))
