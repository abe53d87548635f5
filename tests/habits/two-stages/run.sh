msrun --worker_num=2 --local_worker_num=2 --log_dir=log --join=True pipe.py --iters 8
