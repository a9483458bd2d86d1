"""One adapter over the Hugging Face ViT families, and the small ViT that ships with D2CP."""

from d2cp.backbone.adapter import Backbone
from d2cp.backbone.block import Block, Prefix
from d2cp.backbone.load import backbone_from_config, load_backbone

__all__ = ["Backbone", "Block", "Prefix", "backbone_from_config", "load_backbone"]
