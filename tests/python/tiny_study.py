"""A study that a plan answers in a second."""

STUDY = """name: tiny
model: olmoe-1b-7b
cluster: hgx-h100
gpus: 16
stack: torchtitan
tokens: 20B
max_seq_len: 2048
global_train_batch_size: 64
routing: [balanced]
failures: llama3
runs: 50
search: {expert_degrees: [8], microbatch: [2], shard_sizes: [16], recompute: block}
"""
