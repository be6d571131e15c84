TP=${TP:-2}
PP=$((8 / TP))
torchrun --nproc_per_node 8 --nnodes 4 scripts/training/run_recipe.py --recipe qwen3_30b_a3b_pretrain_config model.tensor_model_parallel_size=$TP model.pipeline_model_parallel_size=${PP}
