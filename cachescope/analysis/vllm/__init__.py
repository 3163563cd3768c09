"""vLLM's folders: whether their names follow from their factors, in what they differ, which factors make them many."""
