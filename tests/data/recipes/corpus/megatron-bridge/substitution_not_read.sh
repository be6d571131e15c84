torchrun --nproc_per_node 8 --nnodes 4 scripts/training/run_recipe.py --recipe qwen3_30b_a3b_pretrain_config $(cat overrides.txt)
