NGPU=64 MODULE=deepseek_v3 CONFIG=deepseek_v3_16b_hybridep ./run_train.sh --parallelism.expert_parallel_degree 16
