//! Committing: winners, their net effect, the conflict check, and the attempt loop.
