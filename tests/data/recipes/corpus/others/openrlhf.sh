deepspeed --module openrlhf.cli.train_sft --max_len 2048 --pretrain meta-llama/Meta-Llama-3-8B --zero_stage 2
