torchrun --nproc-per-node=8 nemo_automodel/recipes/llm/train_ft.py --config jobs/llama3_8b.yaml --step_scheduler.max_steps 20 --distributed.tp_size 2
