torchrun --nproc_per_node 8 --nnodes 1 scripts/training/run_recipe.py --recipe nemotronh_4b_pretrain_config 
