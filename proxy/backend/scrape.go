package backend

import (
	"bytes"
	"strconv"
	"strings"
)

// engineLoad is what an engine's metrics say. Engines run several schedulers
// behind one address (data parallel ranks): counts and sizes are their sums, use
// is their mean.
type engineLoad struct {
	Known       bool // running or waiting was there
	Running     float64
	Waiting     float64
	KVUsage     float64 // 0 to 1
	CacheTokens int     // 0 unknown
	BlockTokens int     // 0 unknown
	LoRA        []string
	Start       float64 // of the process, seconds since 1970; 0 unknown
	Work        float64 // tokens or requests ever processed: falls only at a restart
}

// mean of the samples of several schedulers.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func (m mean) value() (float64, bool) {
	if m.n == 0 {
		return 0, false
	}
	return min(max(m.sum/float64(m.n), 0), 1), true
}

// scraper gathers the samples that the pool wants out of one exposition.
type scraper struct {
	load     engineLoad
	usage    mean
	oldUsage mean // the name that vLLM used up to 0.11, along with the new one from 0.9.2
	loraAt   float64
	pages    int
}

// parseMetrics reads the Prometheus text format for the few samples that are
// wanted, and skips the rest, which is nine tenths histograms, at the speed of a
// byte search. What it can't read it skips, as engines differ.
func parseMetrics(text []byte) engineLoad {
	var s scraper
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(line) > 0 && line[0] != '#' {
			s.line(line)
		}
	}
	return s.finish()
}

func (s *scraper) finish() engineLoad {
	if v, ok := s.usage.value(); ok {
		s.load.KVUsage = v
	} else if v, ok := s.oldUsage.value(); ok {
		s.load.KVUsage = v
	}
	if s.load.BlockTokens == 0 {
		s.load.BlockTokens = s.pages
	}
	return s.load
}

func (s *scraper) line(line []byte) {
	end := bytes.IndexAny(line[:min(len(line), 64)], "{ \t")
	if end < 0 || !wanted(line[0]) {
		return
	}
	name, rest := line[:end], line[end:]
	switch string(name) {
	case "process_start_time_seconds":
		if v, ok := sample(rest); ok {
			s.load.Start = max(s.load.Start, v)
		}
	case "vllm:num_requests_running", "sglang:num_running_reqs", "tgi_batch_current_size", "llamacpp:requests_processing":
		s.addLoad(&s.load.Running, rest)
	case "vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size", "llamacpp:requests_deferred":
		s.addLoad(&s.load.Waiting, rest)
	case "vllm:kv_cache_usage_perc", "sglang:token_usage", "llamacpp:kv_cache_usage_ratio":
		addMean(&s.usage, rest)
	case "vllm:gpu_cache_usage_perc":
		addMean(&s.oldUsage, rest)
	case "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "sglang:prompt_tokens_total",
		"sglang:generation_tokens_total", "llamacpp:prompt_tokens_total", "llamacpp:tokens_predicted_total", "tgi_request_count":
		if v, ok := sample(rest); ok {
			s.load.Work += v
		}
	case "vllm:cache_config_info":
		s.cacheConfig(rest)
	case "vllm:lora_requests_info":
		s.lora(rest)
	case "sglang:max_total_num_tokens":
		if v, ok := sample(rest); ok && v > 0 && v < maxCacheTokens {
			s.load.CacheTokens += int(v)
		}
	case "sglang:page_size":
		if v, ok := sample(rest); ok && v > 0 && v < 1<<20 {
			s.pages = int(v)
		}
	}
}

// wanted looks at a name's first letter: process_, vllm:, sglang:, tgi_, llamacpp:.
func wanted(c byte) bool { return c == 'p' || c == 'v' || c == 's' || c == 't' || c == 'l' }

func (s *scraper) addLoad(to *float64, rest []byte) {
	if v, ok := sample(rest); ok && v >= 0 {
		*to += v
		s.load.Known = true
	}
}

func addMean(to *mean, rest []byte) {
	if v, ok := sample(rest); ok {
		to.add(v)
	}
}

// cacheConfig sizes the cache: in tokens where vLLM says so, else in blocks.
func (s *scraper) cacheConfig(rest []byte) {
	var tokens, blocks, block int
	after := eachLabel(rest, func(name, value []byte) {
		switch string(name) {
		case "kv_cache_size_tokens":
			tokens = number(value)
		case "num_gpu_blocks":
			blocks = number(value)
		case "block_size":
			block = number(value)
		}
	})
	if v, ok := sampleValue(after); !ok || v == 0 {
		return
	}
	if tokens == 0 && block > 0 && blocks < maxCacheTokens/block {
		tokens = blocks * block
	}
	if tokens < maxCacheTokens {
		s.load.CacheTokens += tokens
	}
	s.load.BlockTokens = max(s.load.BlockTokens, block)
}

// lora keeps the adapters of the newest series: vLLM leaves the old ones behind,
// each with its time as the value.
func (s *scraper) lora(rest []byte) {
	var names []string
	after := eachLabel(rest, func(name, value []byte) {
		if n := string(name); n != "running_lora_adapters" && n != "waiting_lora_adapters" {
			return
		}
		for name := range strings.SplitSeq(string(value), ",") {
			if name = strings.TrimSpace(name); name != "" && len(names) < maxModels {
				names = append(names, name)
			}
		}
	})
	if at, ok := sampleValue(after); ok && at >= s.loraAt {
		s.loraAt, s.load.LoRA = at, distinct(names)
	}
}

// number is a count in a label; "None" and nonsense are 0, unknown.
func number(text []byte) int {
	n, err := strconv.ParseInt(string(text), 10, 40)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// sample is the value behind a name, labels or not.
func sample(rest []byte) (float64, bool) { return sampleValue(eachLabel(rest, nil)) }

func sampleValue(rest []byte) (float64, bool) {
	rest = bytes.TrimLeft(rest, " \t")
	if i := bytes.IndexAny(rest, " \t\r"); i >= 0 {
		rest = rest[:i] // a time stamp follows
	}
	v, err := strconv.ParseFloat(string(rest), 64)
	return v, err == nil && finite(v)
}
