# Starts a command once for each rank, as a script of one's own does: sh start.sh RANKS LOGS COMMAND…
# Each rank is in a shell that becomes the command, and the number of a rank has a name that no launcher uses.
ranks=$1
logs=$2
shift 2
rank=0
while [ "$rank" -lt "$ranks" ]; do
    MY_RANK=$rank MY_SIZE=$ranks sh -c 'exec "$@"' wrapper "$@" >"$logs/worker_$rank.log" 2>&1 &
    rank=$((rank + 1))
done
wait
