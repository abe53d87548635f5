#!/usr/bin/env bash
# Stands for the launcher of a checkout of MindFormers, in its form with six arguments: order, ranks, port, logs, join,
# seconds. The order is a program with its arguments, quoted for a shell.
set -eu
[ $# = 6 ] || { echo "six arguments, not $#: $*" >&2; exit 2; }
order=$1 ranks=$2 port=$3 logs=$4 join=$5 seconds=$6
checkout=$(realpath "$(dirname "$0")/..")
export PYTHONPATH=$checkout${PYTHONPATH:+:$PYTHONPATH}
eval "exec msrun --worker_num=$ranks --local_worker_num=$ranks --master_port=$port --log_dir=$logs --join=$join \
    --cluster_time_out=$seconds $order"
