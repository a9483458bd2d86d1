"""Stage 2: two prompt-tuned branches, each read after the other is projected out (DCD)."""
