package steer

import (
	"net/http"
	"strings"
)

// DefaultFields are the top-level members by which a client steers an engine past
// the gateway. A trailing * stands for any ending:
//
//   - where caches are fetched from and put, and which rank computes:
//     kv_transfer_params, ec_transfer_params, bootstrap_*, routed_dp_rank,
//     data_parallel_rank, disagg_prefill_dp_rank
//   - what stands in the place of the prompt that was routed by: input_ids,
//     session_params, chat_template
//   - extension maps of vLLM and Dynamo: vllm_xargs, nvext
//   - turns at the scheduler, and slots of other clients (llama.cpp): priority,
//     id_slot
//   - adapters that are not asked for as models: lora_path, lora
//   - code of the client's own: custom_logit_processor, logits_processors
func DefaultFields() []string {
	return []string{
		"kv_transfer_params", "ec_transfer_params", "bootstrap_*",
		"routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank",
		"input_ids", "session_params", "chat_template",
		"vllm_xargs", "nvext",
		"priority", "id_slot",
		"lora_path", "lora",
		"custom_logit_processor", "logits_processors",
	}
}

// steering are the headers that do the same, to an engine or to a sidecar of its.
var steering = []string{
	"X-Data-Parallel-*", "X-Dp-Rank",
	"X-Prefill*", "X-Encoder-*", "X-Kv-Cache-Source-*", "X-Llm-D-*",
	"X-Worker-Instance-Id", "X-Dynamo-*", "X-Epp-*",
}

// StripHeaders takes away the headers by which a client steers an engine past the
// gateway. A trailing * stands for any ending:
//
//   - which rank computes (vLLM, llm-d, Dynamo): X-Data-Parallel-*, X-Dp-Rank
//   - who computes which part, and whose cache is fetched (llm-d): X-Prefill*,
//     X-Encoder-*, X-Kv-Cache-Source-*, X-Llm-D-*
//   - which worker, and which tokens (Dynamo): X-Worker-Instance-Id, X-Dynamo-*,
//     X-Epp-*
func StripHeaders(h http.Header) {
	for name := range h {
		if !strings.HasPrefix(name, "X-") {
			continue
		}
		for _, rule := range steering {
			if matchesText(rule, name) {
				delete(h, name)
			}
		}
	}
}
