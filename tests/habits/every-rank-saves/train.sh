#!/usr/bin/env bash
RANKS=${1:-2}
OUT=./saved
msrun --worker_num=${RANKS} --local_worker_num=${RANKS} --log_dir=./log --join=True finetune.py \
    --out ${OUT} --epochs 2
