"""Every field that goes into a cache key: what sets it, what it means and what it affects, read off torch's sources."""
