python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 trainer.nnodes=1
