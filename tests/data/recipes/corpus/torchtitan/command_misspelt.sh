NGPU=8 CONFIG_FILE=jobs/llama3_8b.toml ./run_train.sh --training.local_batchsize 4
