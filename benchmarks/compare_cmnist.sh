#!/usr/bin/env bash
# The table of docs/results.md: all methods on the coloured digits, embedded backbone, three seeds.
# Usage: benchmarks/compare_cmnist.sh OUT [METHODS]. Killed, the same command goes on.
set -euo pipefail
exec d2cp compare cmnist --methods "${2:-all}" --out "$1" --seeds 3 --jobs 2 \
  --budget 10000 --selection val_true_groups \
  --set eval_limit=0 --set debias.evaluate_per_group=200 \
  --set debias.lr=0.03 --set debias.epochs=8 \
  --set 'debias.scheduler="step"' --set debias.scheduler_step=6
