"""A bank of restricted lenses, and the ranked findings they lead to; nothing generative."""
