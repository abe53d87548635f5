set -e
cd $(dirname $0)
msrun --worker_num 2 --local_worker_num 2 --master_port 8119 --log_dir logs --join True main.py
