#!/usr/bin/env bash
# All methods on photographs with a background shortcut, over a pretrained ViT-S/14.
# `features` (default): 98 px, five seeds, the methods that can use frozen features, those that ask
# for groups on true and on mined ones, settings searched on validation. The concept model trains
# for 100 steps: the pseudo attribute comes from the guide and is as right as after 600.
# `prompts`: 70 px, three seeds, five epochs, ERM, Group DRO, D2CP and the methods that need pixels;
# learning rate 0.01, since at the preset's 0.1 ERM's training loss does not fall; an average of the
# weights. About three hours on one core.
# Usage: benchmarks/compare_photos.sh PHOTOS BACKBONE OUT [features|prompts [OPTIONS]]; OPTIONS go to
# `d2cp compare`. Killed, the same command goes on.
set -euo pipefail
shared=(--preset photo-cpu --backbone "$2"
  --set 'debias.lr_schedule="step"' --set debias.lr_every=8)
if [ "${4:-features}" = prompts ]; then
  tier=(--methods erm,group_dro,masktune,sas,d2cp --epochs 5 --seeds 3
    --set debias.image_size=70 --set debias.resize=80 --set debias.batch_size=32
    --set debias.lr=0.01 --set debias.evaluate_per_group=100 --set debias.ema=0.98
    --set disentangle.steps=100)
else
  tier=(--tier features --groups both --budget 44000 --search 8 --seeds 5
    --set debias.image_size=98 --set debias.resize=112 --set disentangle.steps=100)
fi
exec d2cp compare "$1" --out "$3" "${tier[@]}" "${shared[@]}" "${@:5}"
