# Starts a command once for each rank of one node: sh start-on-node.sh RANKS FIRST NUMBER LOGS COMMAND…
ranks=$1
rank=$2
end=$(($2 + $3))
logs=$4
shift 4
while [ "$rank" -lt "$end" ]; do
    RANK=$rank WORLD_SIZE=$ranks "$@" >"$logs/worker_$rank.log" 2>&1 &
    rank=$((rank + 1))
done
wait
