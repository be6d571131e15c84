#!/bin/bash
L="--num-layers 8 --hidden-size 1024 --ffn-hidden-size 2816 --num-attention-heads 16 --group-query-attention --num-query-groups 4 --position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --max-position-embeddings 4096 --seq-length 4096 "
R="--micro-batch-size 1 --global-batch-size 64 --train-iters 1000 --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-warmup-iters 100 --bf16 "
MORE=()
if [ "$FP8" = 1 ]; then MORE+=(--fp8-format hybrid); fi
torchrun --nproc_per_node 8 pretrain_gpt.py $L $R --tokenizer-type NullTokenizer --vocab-size 31999 ${MORE[@]}
