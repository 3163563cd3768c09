"""What could be set so that a field of a key has the value that it had: candidates, none of them tried yet."""
