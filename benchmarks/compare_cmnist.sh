#!/usr/bin/env bash
# All methods on the coloured digits, embedded backbone, three seeds. `prompts` (default): the preset's
# settings. `features`: the methods that can use frozen features, settings searched on validation.
# Usage: benchmarks/compare_cmnist.sh OUT [prompts|features [OPTIONS]]; OPTIONS go to `d2cp compare`.
# Killed, the same command goes on.
set -euo pipefail
tier=(--methods all)
[ "${2:-prompts}" = features ] && tier+=(--tier features --search 8)
exec d2cp compare cmnist --out "$1" "${tier[@]}" --seeds 3 --jobs 2 --budget 24000 \
  --selection val_true_groups --set eval_limit=0 --set debias.evaluate_per_group=200 "${@:3}"
