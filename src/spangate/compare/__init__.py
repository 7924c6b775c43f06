"""Two runs side by side: whether they may be compared, and what changed between them."""
