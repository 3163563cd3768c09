"""Audits a cache that others could write, and reports what loading it would execute."""
