"""The rivals: one file a method, one contract, one budget. See docs/methods.md."""
