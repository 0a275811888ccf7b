package cbr

import (
	"strings"
	"testing"
)

// The names are spelled out here once more, so that a slip in the list is seen.
const leftOut = `temperature top_p top_k min_p typical_p n best_of use_beam_search early_stopping max_tokens
	max_completion_tokens max_output_tokens min_tokens max_tool_calls stop stop_sequences stop_token_ids stop_regex no_stop_trim
	include_stop_str_in_output ignore_eos bad_words allowed_token_ids seed presence_penalty frequency_penalty repetition_penalty
	length_penalty repetition_detection logit_bias logprobs top_logprobs prompt_logprobs logprob_token_ids echo
	skip_special_tokens spaces_between_special_tokens thinking_token_budget include_reasoning separate_reasoning stream_reasoning
	structured_outputs guided_json guided_regex guided_ guided_anything structural_tag regex ebnf grammar custom_logit_processor
	logits_processors prediction
	stream stream_options stream_interval include background store metadata user safety_identifier
	service_tier priority request_id rid session_id prompt_cache_key prompt_cache_options prompt_cache_retention moderation
	kv_transfer_params ec_transfer_params bootstrap_host bootstrap_port bootstrap_room routed_dp_rank data_parallel_rank
	disagg_prefill_dp_rank vllm_xargs custom_params custom_labels return_token_ids return_hidden_states return_x`

const takenIn = `tools tool_choice parallel_tool_calls response_format functions
	function_call documents chat_template chat_template_kwargs reasoning_effort reasoning add_generation_prompt
	continue_final_message add_special_tokens truncate_prompt_tokens truncation_side media_io_kwargs mm_processor_kwargs
	cache_salt extra_key lora_path input_ids verbosity modalities session_params suffix prompt_embeds instructions
	output_config thinking guided bootstrap return temperatures Temperature nobody_has_heard_of_this role type`

var everyEndpoint = []Endpoint{Chat, Completions, Responses, Messages, OllamaChat, OllamaGenerate, Generate, Complete}

func TestGenerationAndTransportFieldsAreLeftOut(t *testing.T) {
	for _, name := range strings.Fields(leftOut) {
		for _, ep := range everyEndpoint {
			for _, value := range []string{`1`, `"x"`, `true`, `{"a":[1,null]}`} {
				wantSame(t, ep, chatWith(""), chatWith(`,"`+name+`":`+value))
			}
		}
	}
}

func TestAllOtherFieldsAreIn(t *testing.T) {
	for _, name := range strings.Fields(takenIn) {
		for _, ep := range everyEndpoint {
			wantDifferent(t, ep, chatWith(""), chatWith(`,"`+name+`":"x"`))
			wantDifferent(t, ep, chatWith(`,"`+name+`":"y"`), chatWith(`,"`+name+`":"x"`))
			wantDifferent(t, ep, chatWith(`,"`+name+`":true`), chatWith(`,"`+name+`":false`))
		}
	}
}

func TestEnginesOwnNamesAreLeftOutAtTheirEndpointsOnly(t *testing.T) {
	for ep, names := range map[Endpoint]string{
		OllamaChat: "options keep_alive format", OllamaGenerate: "options keep_alive format",
		Generate: "parameters sampling_params", Complete: "n_predict cache_prompt id_slot dry_base mirostat_tau t_max_predict_ms",
	} {
		for _, name := range strings.Fields(names) {
			wantSame(t, ep, chatWith(""), chatWith(`,"`+name+`":{"a":1}`))
			wantDifferent(t, Chat, chatWith(""), chatWith(`,"`+name+`":{"a":1}`))
			wantDifferent(t, Completions, chatWith(""), chatWith(`,"`+name+`":{"a":1}`))
		}
	}
	wantDifferent(t, OllamaChat, chatWith(`,"think":true`), chatWith(`,"think":false`))
	wantDifferent(t, OllamaGenerate, `{"model":"m","prompt":"x","system":"a"}`, `{"model":"m","prompt":"x","system":"b"}`)
}

func TestModelAndPromptAreIn(t *testing.T) {
	wantDifferent(t, Chat, `{"model":"a","messages":[]}`, `{"model":"b","messages":[]}`)
	wantDifferent(t, Messages, `{"model":"a","messages":[]}`, `{"model":"a"}`)
	wantDifferent(t, Completions, `{"model":"a","prompt":"x"}`, `{"model":"a","prompt":"y"}`)
	wantDifferent(t, Responses, `{"model":"a","input":"x"}`, `{"model":"a","input":"y"}`)
	wantDifferent(t, Responses, `{"model":"a","input":"x","previous_response_id":"a"}`, `{"model":"a","input":"x","previous_response_id":"b"}`)
	wantDifferent(t, Messages, `{"model":"a","system":"x"}`, `{"model":"a","system":"y"}`)
}

func TestFieldsLeftOutAreInBelowTheTopLevel(t *testing.T) {
	wantDifferent(t, Chat, withMessages(`{"role":"user","n":1}`), withMessages(`{"role":"user","n":2}`))
	wantDifferent(t, Chat, chatWith(`,"tools":[{"user":"a"}]`), chatWith(`,"tools":[{"user":"b"}]`))
}

func TestTransferParametersAreInWhenTheyCarryThePrompt(t *testing.T) {
	with := func(value string) string { return chatWith(`,"kv_transfer_params":` + value) }
	wantDifferent(t, Chat, with(`{"prompt_token_ids":[1,2]}`), with(`{"prompt_token_ids":[1,3]}`))
	wantDifferent(t, Chat, with(`{"a":{"b":[]},"prompt_token_ids":[1]}`), chatWith(""))
	wantSame(t, Chat, with(`{"prompt_token_ids":null}`), chatWith(""))
	wantSame(t, Chat, with(`{"a":{"prompt_token_ids":[1]}}`), chatWith(""))
	wantSame(t, Chat, with(`{"a":["prompt_token_ids"],"b":"prompt_token_ids"}`), chatWith(""))
	wantSame(t, Chat, with(`{"prompt_token_ids":[1],"prompt_token_ids":null}`), chatWith(""))
	wantSame(t, Chat, with(`[{"prompt_token_ids":[1]}]`), chatWith(""))
}

func TestOutputLimitsAreInWhenThePromptIsCutByThem(t *testing.T) {
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		with := func(cut, limit string) string {
			return chatWith(`,"` + name + `":` + limit + `,"truncate_prompt_tokens":` + cut)
		}
		wantDifferent(t, Chat, with("-1", "5"), with("-1", "6"))
		wantDifferent(t, Completions, with("-1.0", "5"), with("-1", "6"))
		wantSame(t, Chat, with("-1", "5"), with("-1.0", "50e-1"))
		for _, cut := range []string{"100", "0", "-0", "null", `"-1"`, "true"} {
			wantSame(t, Chat, with(cut, "5"), with(cut, "6"))
		}
	}
	wantSame(t, Chat, chatWith(`,"truncate_prompt_tokens":-1,"max_output_tokens":1`), chatWith(`,"truncate_prompt_tokens":-1,"max_output_tokens":2`))
}

func TestOptionsChangeTheListForOneModel(t *testing.T) {
	rules, err := Compile(Options{Out: []string{"verbosity", "x_*"}, In: []string{"stop", "guided_json", "return_*"}})
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := encoded(t, Chat, chatWith(""), rules)
	for members, in := range map[string]bool{
		`"verbosity":"low"`: false, `"x_trace":1`: false, `"x_":1`: false, `"x":1`: true,
		`"stop":"."`: true, `"guided_json":{}`: true, `"guided_regex":"."`: false, `"return_token_ids":true`: true, `"seed":1`: false,
	} {
		got, _ := encoded(t, Chat, chatWith(","+members), rules)
		if (got != plain) != in {
			t.Errorf("%s: in is %v, want %v", members, got != plain, in)
		}
	}
}

func TestOperatorsListOverridesTheExceptions(t *testing.T) {
	rules, err := Compile(Options{Out: []string{"max_tokens", "kv_*"}})
	if err != nil {
		t.Fatal(err)
	}
	const cut = `,"truncate_prompt_tokens":-1`
	a, _ := encoded(t, Chat, chatWith(cut), rules)
	b, _ := encoded(t, Chat, chatWith(cut+`,"max_tokens":5,"kv_transfer_params":{"prompt_token_ids":[1]}`), rules)
	if a != b {
		t.Error("a field that the operator leaves out is in")
	}
}

func TestCompileNamesEveryFault(t *testing.T) {
	_, err := Compile(Options{
		Out: []string{"", "a*b", "model", "mess*", "*", "pro*"},
		In:  []string{"", "tools", "zzz*", "*x"},
	})
	if err == nil {
		t.Fatal("faulty options were taken")
	}
	for _, want := range []string{`name ""`, `"a*b"`, `"model"`, `"mess*"`, `"*"`, `"pro*"`, `"tools"`, `"zzz*"`, `"*x"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word about %s in:\n%v", want, err)
		}
	}
	if _, err := Compile(Options{Out: []string{"stop"}, In: []string{"stop"}}); err == nil {
		t.Error("a field both in and out was taken")
	}
	if _, err := Compile(Options{In: []string{"guided_*", "guided_json", "max_*", "guid*"}}); err != nil {
		t.Error(err)
	}
}
