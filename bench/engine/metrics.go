package engine

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// endings counts how requests end.
type endings struct {
	stop, length, aborted, failed atomic.Uint64
}

func (e *endings) finished(reason string) {
	if reason == "length" {
		e.length.Add(1)
		return
	}
	e.stop.Add(1)
}

// family is one metric of the exposition.
type family struct {
	name, kind, help string
	samples          []sample
}

type sample struct {
	labels string // beyond engine and model_name
	value  float64
}

func one(name, kind, help string, value float64) family {
	return family{name, kind, help, []sample{{"", value}}}
}

// metrics writes the exposition by hand, under vLLM's names: no registry, no collector goroutine.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	model := s.cfg.Model
	for _, f := range s.families() {
		_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, m := range f.samples {
			_, _ = fmt.Fprintf(w, "%s{engine=\"0\",model_name=%q%s} %g\n", f.name, model, m.labels, m.value)
		}
	}
	_, _ = fmt.Fprintf(w, "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.\n"+
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", s.born.Unix())
	p := s.cfg.Profile
	_, _ = fmt.Fprintf(w, "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\n"+
		"vllm:cache_config_info{block_size=\"%d\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\","+
		"kv_cache_size_tokens=\"%d\",num_gpu_blocks=\"%d\"} 1\n", p.BlockTokens, p.KVTokens, p.KVTokens/p.BlockTokens)
}

func (s *Server) families() []family {
	st, ends := s.state(), &s.endings
	return []family{
		one("vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", float64(st.Running)),
		one("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", float64(st.Queued)),
		one("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", st.KVUsage),
		one("vllm:prefix_cache_queries_total", "counter", "Prefix cache queries, in tokens.", float64(st.PromptTokens)),
		one("vllm:prefix_cache_hits_total", "counter", "Prefix cache hits, in tokens.", float64(st.CachedTokens)),
		one("vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", float64(st.PromptTokens)),
		one("vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", float64(st.OutputTokens)),
		one("vllm:num_preemptions_total", "counter", "Cumulative number of preemptions.", float64(st.Preemptions)),
		{"vllm:request_success_total", "counter", "Count of successfully processed requests.", []sample{
			{`,finished_reason="stop"`, float64(ends.stop.Load())},
			{`,finished_reason="length"`, float64(ends.length.Load())},
			{`,finished_reason="abort"`, float64(ends.aborted.Load())},
			{`,finished_reason="error"`, float64(ends.failed.Load())},
		}},
	}
}
