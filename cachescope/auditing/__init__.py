"""What loading a cache that somebody else could write would execute: rules, and what is held against them."""
