"""Readers of torch's remote caches: a live Redis, and dumps of one. Nothing is ever written to a server."""

from __future__ import annotations
