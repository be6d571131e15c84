CONFIG_FILE=jobs/llama3_8b.toml ./run_train.sh
