#!/bin/bash
# Train on the nodes of a Slurm job, whose Ray lives as long as the job.
#
#   sbatch --nodes 8 examples/slurm.sh run.yaml --model.path MODEL --data.train-files FILE --out runs/math
#   sbatch --nodes 8 examples/slurm.sh resume runs/math        after a time limit, from the last checkpoint
#
# Arguments are those of `llmtrain train --config`, or of `llmtrain resume`; `llmtrain plan --write run.yaml` makes the
# configuration. entrostat is installed in the environment that sbatch is called from, and this folder is one that all
# nodes see.
#SBATCH --job-name llmtrain
#SBATCH --nodes 2
#SBATCH --ntasks-per-node 1
#SBATCH --gpus-per-node 8
#SBATCH --exclusive
#SBATCH --output %x-%j.log
set -euo pipefail

if [ $# = 0 ]; then
  echo "usage: sbatch $0 CONFIG.yaml [FLAG...], or resume RUN" >&2
  exit 2
fi
if [ "$1" = resume ]; then
  command=("$@")
else
  command=(train --config "$@" --topology.name ray)
fi

# Only who has the token gets in; the file is readable by its owner alone.
export RAY_AUTH_MODE=token
export RAY_AUTH_TOKEN_PATH=${RAY_AUTH_TOKEN_PATH:-$HOME/.ray/auth_token}
if [ ! -s "$RAY_AUTH_TOKEN_PATH" ]; then
  mkdir -p "$(dirname "$RAY_AUTH_TOKEN_PATH")"
  (umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$RAY_AUTH_TOKEN_PATH")
fi

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
address=$(srun --nodes 1 --ntasks 1 --nodelist "$head" hostname -i | awk '{print $1}'):${RAY_PORT:-6379}

# On each node one Ray; once all are there, the command runs on the first, and the others end with it.
srun ray symmetric-run --address "$address" --min-nodes "$SLURM_NNODES" -- \
  llmtrain "${command[@]}" --topology.address "$address"
