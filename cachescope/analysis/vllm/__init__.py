"""vLLM's folders: whether their names follow from their factors, how they differ, and which factors make so many of them."""
