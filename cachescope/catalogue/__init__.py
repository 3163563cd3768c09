"""Every field of a cache key: what sets it, what it means and what it affects, extracted from torch's sources."""
