"""Stage 2: two prompt-tuned branches, cross null-space projection, and a model to ship."""
