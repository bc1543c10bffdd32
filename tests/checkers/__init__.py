"""What clients saw, judged by the promises: a history, a last look, one function per invariant."""
