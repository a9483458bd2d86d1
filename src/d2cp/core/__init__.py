"""What every stage stands on: randomness, files, checkpoints, the run directory, processes."""
