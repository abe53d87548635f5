#!/usr/bin/env bash
# Stands for the launcher of a checkout of MindFormers, in its form with six arguments (order, ranks, port, logs, join,
# seconds) and in that for a node of several (order, ranks, the node's ranks, address, port, node, logs, join, seconds).
# The order is a program with its arguments, quoted for a shell.
set -eu
case $# in
    6) order=$1 ranks=$2 here=$2 port=$3 node= ; shift 3 ;;
    9) order=$1 ranks=$2 here=$3 port=$5 node="--master_addr=$4 --node_rank=$6"; shift 6 ;;
    *) echo "six or nine arguments, not $#: $*" >&2; exit 2 ;;
esac
logs=$1 join=$2 seconds=$3
checkout=$(realpath "$(dirname "$0")/..")
export PYTHONPATH=$checkout${PYTHONPATH:+:$PYTHONPATH}
eval "exec msrun --worker_num=$ranks --local_worker_num=$here $node --master_port=$port --log_dir=$logs --join=$join \
    --cluster_time_out=$seconds $order"
