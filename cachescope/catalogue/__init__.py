"""Every field of a cache key and every reason not to cache, extracted from torch's sources: what each is, and what to do."""
