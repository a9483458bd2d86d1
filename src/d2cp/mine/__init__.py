"""Confidence-guided bias concept mining (CBCM): from tokens and labels to a pseudo attribute."""

from d2cp.config.mine import MineConfig
from d2cp.mine.mined import Mined, apply
from d2cp.mine.mined_files import load_mined, save_mined
from d2cp.mine.miner import mine
from d2cp.mine.verdict import Verdict

__all__ = ["MineConfig", "Mined", "Verdict", "apply", "load_mined", "mine", "save_mined"]
