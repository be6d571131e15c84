torchrun --nproc_per_node 8 --nnodes 128 scripts/training/run_recipe.py --recipe deepseek_v3_pretrain_config 
