torchrun --nproc_per_node 8 --nnodes 1 scripts/training/run_recipe.py --recipe llama31_8b_pretrain_config mixed_precision=bf16_with_fp8_current_scaling_mixed model.context_parallel_size=1
