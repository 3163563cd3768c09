"""What belongs together in a cache directory, what is alone, and what can go."""
