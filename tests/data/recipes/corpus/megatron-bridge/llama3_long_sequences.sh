torchrun --nproc_per_node 8 --nnodes 8 scripts/training/run_recipe.py --recipe llama3_8b_16k_pretrain_config 
