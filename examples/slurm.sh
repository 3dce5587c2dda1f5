#!/bin/bash
# Train in a Slurm job on 1 GPU, on the 8 GPUs of one node, or on the 64 GPUs of eight nodes:
#
#   sbatch --gpus-per-node 1 --cpus-per-task 16 --mem 200G examples/slurm.sh run.yaml FLAG...
#   sbatch --gpus-per-node 8 --exclusive --mem 0 examples/slurm.sh run.yaml FLAG...
#   sbatch --nodes 8 --gpus-per-node 8 --exclusive --mem 0 examples/slurm.sh run.yaml FLAG...
#
# run.yaml comes from `llmtrain plan --write run.yaml` for as many GPUs. FLAGs are those of `llmtrain train`, such as
# --model.path MODEL --data.train-files FILE --out runs/math. To continue that run in a new job, put `resume runs/math`
# in place of `run.yaml FLAG...`. Call sbatch in the Python environment that has entrostat, in a folder that all nodes
# see; add --partition, --account and --time as your cluster asks.
#
# --signal: ten minutes before the time limit the trainer finishes its step, saves a checkpoint and exits with code 130.
# Give more seconds if a step takes longer. `scancel --batch --signal INT JOBID` does the same at any time.
#SBATCH --job-name llmtrain
#SBATCH --output %x-%j.log
#SBATCH --signal B:INT@600
#SBATCH --no-requeue
set -euo pipefail

if [ $# = 0 ]; then
  echo "usage: sbatch $0 CONFIG.yaml [FLAG...], or sbatch $0 resume RUN" >&2
  exit 2
fi
nodes=${SLURM_JOB_NUM_NODES:?start this script with sbatch}
gpus=${SLURM_GPUS_ON_NODE:?ask for GPUs: sbatch --gpus-per-node 8 ...}

# Threads per rank. Without this the trainer counts the CPUs of the whole machine, not those of the job.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(((SLURM_CPUS_ON_NODE + gpus - 1) / gpus))}

# Only processes with this token can use the job's Ray. Only its owner can read the file.
export RAY_AUTH_MODE=token
export RAY_AUTH_TOKEN_PATH=${RAY_AUTH_TOKEN_PATH:-$HOME/.ray/auth_token}
if [ ! -s "$RAY_AUTH_TOKEN_PATH" ]; then
  mkdir -p "$(dirname "$RAY_AUTH_TOKEN_PATH")"
  (umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$RAY_AUTH_TOKEN_PATH")
fi

if [ "$1" = resume ]; then
  command=("$@")
else
  command=(train --config "$@")
fi

# One node: the trainer starts Ray itself. Several nodes: Ray starts on the first, then on the others, and the trainer
# waits until all of them have joined. Slurm ends Ray when the trainer exits.
if [ "$nodes" -gt 1 ]; then
  others=$((nodes - 1)) port=${RAY_PORT:-6379}
  ip=$(srun --relative 1 --nodes 1 --ntasks 1 getent ahostsv4 "$(hostname)" | awk 'NR == 1 {print $1}')
  srun --relative 0 --nodes 1 --ntasks 1 \
    ray start --head --node-ip-address "$ip" --port "$port" --disable-usage-stats --block &
  until (: <"/dev/tcp/$ip/$port") 2>/dev/null; do
    kill -0 $! # ends this script if Ray could not start
    sleep 1
  done
  srun --relative 1 --nodes "$others" --ntasks "$others" \
    ray start --address "$ip:$port" --disable-usage-stats --block &
  [ "$1" = resume ] || command+=(--topology.name ray)
  command+=(--topology.address "$ip:$port")
fi

exec llmtrain "${command[@]}" # in place of this shell, so that signals for the batch script reach the trainer
