"""Stage 1, first half: images to K disentangled concepts, by diffusion (EncDiff).

Light to import: the parts that need torch are imported from their own modules.
"""

from d2cp.config.disentangle import DisentangleConfig

__all__ = ["DisentangleConfig"]
