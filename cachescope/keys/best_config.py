"""The name of a Triton autotune result, derived from the file of its kernel."""

from __future__ import annotations

import hashlib


def best_config_name(kernel_file: str, cache_key_tag: str = "", torch_key: bytes | None = None) -> str:
    """Return the file name of the best configuration of a kernel; the file is in the kernel's folder.

    Parameters
    ----------
    kernel_file : str
        Base name of the kernel's file, ``c….py``.
    cache_key_tag : str, optional
        ``torch.compiler.config.cache_key_tag``, from the environment ``TORCH_COMPILE_CACHE_KEY_TAG``.
    torch_key : bytes, optional
        The 32 bytes of torch's ``torch_key()``, for torch 2.8 and later. None for 2.6 and 2.7.

    Notes
    -----
    Mirrors ``torch/_inductor/runtime/autotune_cache.py`` ``AutotuneCache._prepare_key`` (2.6 to 2.15) and
    ``_make_local_cache_key`` (2.8 to 2.15). In 2.5 the kernel's own name was used.

    Examples
    --------
    >>> best_config_name("cabc.py")[:8], best_config_name("cabc.py", torch_key=b"k" * 32)[:8]
    ('5b4f75fb', '84f08109')
    """
    name = hashlib.sha256(f"{kernel_file}:{cache_key_tag}".encode()).hexdigest()
    if torch_key is not None:
        name = hashlib.sha256(name.encode() + torch_key).hexdigest()
    return f"{name}.best_config"
