#!/bin/bash
DEVICE_NUM=2
export GLOG_v=2

msrun --worker_num=$DEVICE_NUM --local_worker_num=$DEVICE_NUM --master_port=8118 \
      --log_dir=msrun_log --join=True \
      train.py --device_target=CPU --epoch_size 2 > train.log 2>&1 &
