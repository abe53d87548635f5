#!/bin/sh
# Train without chaos: two ranks on this machine.
msrun --worker_num=2 --local_worker_num=2 --master_port=8118 --join=True --log_dir=logs train.py --epochs=3
