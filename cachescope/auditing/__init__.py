"""Audits a cache that others could write: what would loading it execute? The rules, and the checks against them."""
