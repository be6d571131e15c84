#!/bin/bash
NGPU=16 CONFIG_FILE="./jobs/llama3_8b.toml" ./run_train.sh --training.local_batch_size 4 --compile.enable --parallelism.tensor-parallel-degree=2 --activation_checkpoint.mode full
