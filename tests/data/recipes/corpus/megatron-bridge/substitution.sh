OVERRIDES="
  train.global_batch_size=64
  model.expert_model_parallel_size=8
"
torchrun --nproc_per_node 8 --nnodes 4 scripts/training/run_recipe.py --recipe qwen3_30b_a3b_pretrain_config --mode pretrain $(echo "$OVERRIDES" | tr "\n" " ")
