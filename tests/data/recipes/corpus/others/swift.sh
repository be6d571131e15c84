NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B --train_type lora --max_length 2048
