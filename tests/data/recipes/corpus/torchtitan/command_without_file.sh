NGPU=8 CONFIG_FILE=jobs/nowhere.toml ./run_train.sh
