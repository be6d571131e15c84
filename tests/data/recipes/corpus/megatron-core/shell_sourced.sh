#!/bin/bash
source "$(dirname "$0")/sourced/model.sh"
torchrun --nproc_per_node 8 pretrain_gpt.py "${MODEL[@]}" --micro-batch-size 1 --global-batch-size 64 --train-iters 1000 --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-warmup-iters 100 --bf16 --tokenizer-type NullTokenizer --vocab-size 31999 
