from torchtitan.trainer import Trainer

def llama3_8b() -> Trainer.Config:
    return Trainer.Config()
