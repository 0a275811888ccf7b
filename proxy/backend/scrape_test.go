package backend

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestEveryEnginesMetricsAreRead(t *testing.T) {
	cases := map[string]engineLoad{
		"vllm_load.txt":       {Known: true, Running: 14, Waiting: 16, KVUsage: 0.9921259842519685, CacheTokens: 4096, BlockTokens: 32, Start: 1.79597746326e+09},
		"vllm_idle.txt":       {Known: true, CacheTokens: 4096, BlockTokens: 32, Start: 1.79597746326e+09},
		"vllm_ranks_lora.txt": {Known: true, Running: 7, Waiting: 2, KVUsage: 0.5, CacheTokens: 3200, BlockTokens: 16, Start: 1.7e9, LoRA: []string{"a", "b", "c"}},
		"sglang.txt":          {Known: true, Running: 7, Waiting: 3, KVUsage: 0.28, CacheTokens: 454000, BlockTokens: 16, Work: 8128902},
		"tgi.txt":             {Known: true, Running: 5, Waiting: 2, Work: 812},
		"llamacpp.txt":        {Known: true, Running: 4, Waiting: 1, KVUsage: 0.5, Work: 9120},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			got := parseMetrics(capture(t, name))
			if want.Work == 0 {
				got.Work = 0
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func capture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// oracle sums a family as the client library reads it.
func oracle(t testing.TB, text []byte, names ...string) float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, name := range names {
		for _, m := range families[name].GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return sum
}

func TestScannerAgreesWithTheClientLibrary(t *testing.T) {
	for _, name := range []string{"vllm_load.txt", "vllm_idle.txt", "vllm_ranks_lora.txt", "sglang.txt", "llamacpp.txt", "tgi.txt"} {
		text := capture(t, name)
		got := parseMetrics(text)
		running := oracle(t, text, "vllm:num_requests_running", "sglang:num_running_reqs", "tgi_batch_current_size", "llamacpp:requests_processing")
		waiting := oracle(t, text, "vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size", "llamacpp:requests_deferred")
		work := oracle(t, text, "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "sglang:prompt_tokens_total", "llamacpp:prompt_tokens_total", "tgi_request_count")
		if got.Running != running || got.Waiting != waiting || math.Abs(got.Work-work) > 1e-6 {
			t.Errorf("%s: %v %v %v, want %v %v %v", name, got.Running, got.Waiting, got.Work, running, waiting, work)
		}
	}
}

func TestMalformedMetricsAreSkipped(t *testing.T) {
	const good = "vllm:num_requests_running 2\n"
	for _, bad := range []string{
		"vllm:num_requests_running{engine=\"0\n",
		"vllm:num_requests_running{engine} 3\n",
		"vllm:num_requests_running{engine=\"0\"}\n",
		"vllm:num_requests_running NaN\n",
		"vllm:num_requests_running +Inf\n",
		"vllm:num_requests_running -1\n",
		"vllm:num_requests_running abc\n",
		"vllm:num_requests_running\n",
		"vllm:kv_cache_usage_perc NaN\n",
		"vllm:num_requests_running_more 9\n",
		"sglang:max_total_num_tokens 1e300\n",
		"vllm:cache_config_info{num_gpu_blocks=\"99999999999999999999\",block_size=\"-4\"} 1\n",
		strings.Repeat("v", 1000) + "\n",
		"\n\n{}\n",
		"\xff\xfe\n",
	} {
		got := parseMetrics([]byte(bad + good))
		want := engineLoad{Known: true, Running: 2}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	if got := parseMetrics([]byte("tgi_queue_size 3 1700000000000\r\ntgi_batch_current_size\t4")); got.Waiting != 3 || got.Running != 4 {
		t.Errorf("time stamp, tab, CR, no end of line: %+v", got)
	}
}

func TestKVUsageStaysBetweenZeroAndOne(t *testing.T) {
	for text, want := range map[string]float64{"1.5": 1, "-2": 0, "0.25": 0.25} {
		if got := parseMetrics([]byte("sglang:token_usage " + text)).KVUsage; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func FuzzParseMetrics(f *testing.F) {
	for _, name := range []string{"vllm_ranks_lora.txt", "sglang.txt", "tgi.txt", "llamacpp.txt"} {
		f.Add(capture(f, name))
	}
	f.Add([]byte("vllm:cache_config_info{a=\"\\\\\\n\\\"\",block_size = \"16\" , num_gpu_blocks=\"3\",} 1 5"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := parseMetrics(text)
		if got.KVUsage < 0 || got.KVUsage > 1 || got.Running < 0 || got.Waiting < 0 || got.CacheTokens < 0 || got.BlockTokens < 0 {
			t.Fatalf("%+v", got)
		}
		if len(got.LoRA) > 2*maxModels {
			t.Fatal("adapters without bound")
		}
	})
}

func BenchmarkParseMetrics(b *testing.B) {
	text := capture(b, "vllm_load.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		parseMetrics(text)
	}
}
