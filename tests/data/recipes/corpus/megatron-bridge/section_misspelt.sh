torchrun --nproc_per_node 8 --nnodes 1 scripts/training/run_recipe.py --recipe llama31_8b_pretrain_config trian.global_batch_size=64
