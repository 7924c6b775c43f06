"""What is said of a run that was judged: the account, its digests, levels, words and advice."""
