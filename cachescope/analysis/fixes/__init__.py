"""What could be set so that a field of a key has its earlier value: candidates, none of them tried yet."""
