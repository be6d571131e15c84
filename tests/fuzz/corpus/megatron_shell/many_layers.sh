torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2147483647 --hidden-size 4096 --num-attention-heads 32 --pipeline-model-parallel-size 4
