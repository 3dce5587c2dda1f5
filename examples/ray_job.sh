#!/bin/bash
# Train on a Ray cluster that is running already, through `ray job submit`:
#
#   examples/ray_job.sh http://127.0.0.1:8265 run.yaml FLAG...
#
# It is the same command for 1, 8 and 64 GPUs: `llmtrain plan --write run.yaml` writes into run.yaml how many the run
# uses. run.yaml is uploaded; all other paths are absolute ones that every machine of the cluster sees, in FLAGs such as
# --model.path /mnt/model --data.train-files /mnt/train.parquet --out /mnt/runs/math. To continue that run, put
# `resume /mnt/runs/math` in place of `run.yaml FLAG...`.
#
# Here only Ray is needed, on the cluster entrostat[train,deepspeed,ray,vllm], and ray[default] on its head. If the
# cluster asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN. Ctrl-C leaves the job running; `ray job stop`
# lets the trainer finish its step and save a checkpoint.
set -euo pipefail

if [ $# -lt 2 ]; then
  echo "usage: $0 ADDRESS CONFIG.yaml [FLAG...], or $0 ADDRESS resume RUN" >&2
  exit 2
fi
address=$1
shift

upload=()
if [ "$1" = resume ]; then
  command=("$@")
else
  if [[ " ${*/=/ } " != *" --out /"* ]]; then
    echo "error: give --out an absolute path on the cluster: the job's own folder is deleted after it" >&2
    exit 2
  fi
  folder=$(mktemp -d)
  trap 'rm -r "$folder"' EXIT
  cp "$1" "$folder/run.yaml"
  upload=(--working-dir "$folder")
  command=(train --config run.yaml "${@:2}" --topology.name ray)
fi

# `ray job stop` sends SIGINT and waits up to half an hour for the checkpoint, in place of SIGTERM and 3 seconds.
variables='{"env_vars": {"RAY_JOB_STOP_SIGNAL": "SIGINT", "RAY_JOB_STOP_WAIT_TIME_S": "1800"}}'

# The trainer reserves its GPUs itself: one more for the entrypoint would be missing there. Ray sets OMP_NUM_THREADS=1
# for the entrypoint; without it the trainer divides the CPUs of a machine among its ranks.
ray job submit --address "$address" ${upload[@]+"${upload[@]}"} --runtime-env-json "$variables" \
  --entrypoint-num-gpus 0 -- env -u OMP_NUM_THREADS python -m llmtrain "${command[@]}" --topology.address auto
