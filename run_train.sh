#!/usr/bin/env bash
# Trains: prepares the clone (tools/setup.sh: minutes the first time, 0.05 s later), then starts `titan train`.
#
#   ./run_train.sh                                             the debug model on the bundled text
#   CONFIG_FILE=./train_configs/llama3_8b.toml ./run_train.sh  another configuration
#   ./run_train.sh --training.steps 20 --optimizer.lr 1e-3     any key of the configuration
#   NGPU=4 LOG_RANK=0,3 ./run_train.sh                         four ranks on this machine; prints the logs of ranks 0 and 3
#   NGPU=512 COMM_MODE=fake_backend ./run_train.sh             simulates one rank of 512: its memory and traffic
#
# Relative paths in a configuration are relative to the root of the repository.
set -euo pipefail
caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

CONFIG_FILE=${CONFIG_FILE:-./train_configs/debug_model.toml}
NGPU=${NGPU:-1}

# A relative CONFIG_FILE is looked for in the caller's folder first, then in the root of the repository.
if [[ $caller != "$root" && $CONFIG_FILE != /* && -e $caller/$CONFIG_FILE ]]; then
  CONFIG_FILE=$caller/$CONFIG_FILE
fi

"$root/tools/setup.sh" --quiet --ranks "$NGPU" --for-job --job.config_file "$CONFIG_FILE" "$@"
cd "$root"
titan=build/release/bin/titan
if [[ -n ${COMM_MODE:-} ]]; then  # one process simulates a rank of NGPU
  export NGPU
  exec "$titan" train --job.config_file "$CONFIG_FILE" --comm.mode "$COMM_MODE" "$@"
fi
if [[ $NGPU == 1 ]]; then
  exec "$titan" train --job.config_file "$CONFIG_FILE" "$@"
fi
exec "$titan" launch --nproc "$NGPU" -- train --job.config_file "$CONFIG_FILE" "$@"
