#!/bin/bash
#SBATCH --nodes=4
srun torchrun --nnodes 4 --nproc_per_node 8 --rdzv_backend c10d -m torchtitan.train --job.config_file jobs/llama3_8b.toml --model.converters quantize.linear.float8 --quantize.linear.float8.filter_fqns output,attention.wk --training.steps 50
