"""The protocol of a comparison: contract, tiers, budget, selection rule, grid of cells."""
