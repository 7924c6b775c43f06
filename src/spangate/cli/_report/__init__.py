"""The page that ``spangate report`` writes: what it says of runs, and its template, style and scripts beside it."""
