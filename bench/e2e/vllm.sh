#!/usr/bin/env bash
# Becomes a vLLM engine on the CPU: [EVENTS=PORT,PORT] [BLOCKS=N] vllm.sh VENV MODEL_DIR PORT [ARGUMENT...].
#
# EVENTS are the ports of its KV cache events and of their replay: with a * in the endpoint the engine listens, as gateways expect. BLOCKS
# is the size of its cache in blocks of 32 tokens. Further arguments are handed to the engine.
set -euo pipefail
venv=$1 model=$2 port=$3
shift 3

export VLLM_CPU_KVCACHE_SPACE=1 VLLM_HOST_IP=127.0.0.1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export HF_HUB_OFFLINE=1 PYTHONHASHSEED=0 PYTHONUNBUFFERED=1
# For /reset_prefix_cache.
export VLLM_SERVER_DEV_MODE=1

# Else every engine ties its worker to the same core, where one that comes back starves behind the one that works.
export VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1

if [[ -n ${EVENTS:-} ]]; then
  set -- "$@" --kv-events-config "{\"enable_kv_cache_events\": true, \"publisher\": \"zmq\", \"topic\": \"kv-events\",
    \"endpoint\": \"tcp://*:${EVENTS%,*}\", \"replay_endpoint\": \"tcp://127.0.0.1:${EVENTS#*,}\"}"
fi

# The package carries no metadata under the name vllm, so its command fails: the module is started instead. Blocks of 16 tokens are
# refused on the CPU. 1,024 blocks of this model take 16 MB and hold all that the checks say, so nothing is evicted unless it is meant
# to be. --enable-scale-out is for the endpoints that render a prompt.
exec "$venv/bin/python" -m vllm.entrypoints.openai.api_server \
  --model "$model" --served-model-name tiny-qwen3 --load-format dummy \
  --host 127.0.0.1 --port "$port" \
  --enable-prefix-caching --prefix-caching-hash-algo sha256_cbor --block-size 32 --num-gpu-blocks-override "${BLOCKS:-1024}" \
  --max-model-len 4096 --max-num-seqs 16 --enforce-eager --enable-prompt-tokens-details --enable-scale-out \
  --enable-auto-tool-choice --tool-call-parser hermes "$@"
