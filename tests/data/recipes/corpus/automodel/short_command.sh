automodel jobs/llama3_8b.yaml --nproc-per-node 8
