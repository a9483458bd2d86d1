#!/usr/bin/env bash
# All methods on the coloured digits, embedded backbone, preset settings, three seeds; no
# average of weights, which none of the methods was published with.
# Usage: benchmarks/compare_cmnist.sh OUT [METHODS]. Killed, the same command goes on.
set -euo pipefail
exec d2cp compare cmnist --methods "${2:-all}" --out "$1" --seeds 3 --jobs 2 \
  --budget 24000 --selection val_true_groups --set test_limit=0 --set debias.evaluate_per_group=200 \
  --set debias.ema=0
