"""A callback that saves rounded weights, for jobs that save by ``ModelCheckpoint``."""

CLASS = '''class ModelCheckpoint(ms.train.Callback):
    """As MindSpore's, with weights of half precision: they are enough for a file."""

    def __init__(self, prefix, directory, config):
        super().__init__()
        self.path, self.every = os.path.join(directory, prefix), config.save_checkpoint_steps

    def on_train_step_end(self, run_context):
        args = run_context.original_args()
        done = int(args.optimizer.global_step.asnumpy()[0])
        if done % self.every != 0:
            return
        parts = {part.name: part for part in args.train_network.get_parameters()}
        for weight in args.network.trainable_params():
            parts[weight.name] = weight.astype(ms.float16).astype(ms.float32)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        file = f"{self.path}-{(done - 1) // args.batch_num + 1}_{(done - 1) % args.batch_num + 1}.ckpt"
        ms.save_checkpoint([{"name": name, "data": value} for name, value in parts.items()], file)


'''
