composer train/train.py train/yamls/pretrain/mpt-125m.yaml data_local=my-copy-c4 max_duration=10ba
