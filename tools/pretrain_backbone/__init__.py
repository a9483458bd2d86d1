"""How the embedded ViT was trained: glyphs of letters, never a digit, never MNIST."""
